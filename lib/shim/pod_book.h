// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "cri/messages.h"
#include "shim/held_devices.h"

namespace devmgr::shim {

/// Whose sandboxes and containers are whose, by the runtime's ids. Learned from
/// what passes, and from lists of the runtime.
class PodBook {
 public:
  struct KnownContainer {
    std::string sandbox_id;
    std::string name;
    bool exited = false;     ///< When the runtime last listed it.
    HeldDevices held;        ///< As its annotations say.
    bool is_marked = false;  ///< They say all: a shim gave it its devices.
  };

  void AddSandbox(const std::string& id, const cri::SandboxIdentity& identity);
  void AddContainer(const std::string& id, KnownContainer container);
  /// Also its containers. Returns whose it was, if it was the last sandbox
  /// known of that pod; else an identity without UID.
  cri::SandboxIdentity RemoveSandbox(const std::string& id);
  void RemoveContainer(const std::string& id);

  /// The runtime is asked for its lists from now on, until Reconcile: what
  /// comes and goes meanwhile is newer than they are.
  void BeginLook();
  /// Takes complete lists for the truth of when they were asked for. Returns
  /// the pods that have no sandbox any more.
  std::set<PodUid> Reconcile(const std::vector<cri::Sandbox>& sandboxes,
                             const std::vector<cri::Container>& containers);

  /// nullptr when it is not known.
  const cri::SandboxIdentity* FindSandbox(const std::string& id) const;
  const KnownContainer* FindContainer(const std::string& id) const;

  bool HasSandboxOf(const PodUid& pod) const;
  const std::map<std::string, KnownContainer>& all_containers() const {
    return containers_;
  }
  /// Empty: it has no sandbox.
  ObjectName NameOf(const PodUid& pod) const;
  /// UIDs of pods with a sandbox.
  std::set<PodUid> Pods() const;

  std::size_t sandboxes() const { return sandboxes_.size(); }
  std::size_t foreign_sandboxes() const;
  std::size_t containers() const { return containers_.size(); }

 private:
  void Touch(const std::string& id);

  std::map<std::string, cri::SandboxIdentity> sandboxes_;
  std::map<std::string, KnownContainer> containers_;
  /// Ids that came or went since BeginLook, sandboxes and containers.
  std::set<std::string> touched_;
  bool looking_ = false;
};

}  // namespace devmgr::shim
