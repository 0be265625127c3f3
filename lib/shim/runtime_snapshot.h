// SPDX-License-Identifier: Apache-2.0
//
// What a runtime has of pods, from its lists and from what it said of single
// containers. Pure.
#pragma once

#include <devmgr/runtime_source.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "cri/messages.h"
#include "shim/runtime_client.h"

namespace devmgr::shim {

RuntimeContainer::State RunStateOf(cri::ContainerState state);

using PodRuns = std::map<PodUid, std::shared_ptr<const PodRun>>;

/// What the runtime said of containers beyond its lists, by their IDs.
class ContainerDetails {
 public:
  void Put(const cri::Container& listed, cri::ContainerStatus status);
  /// Those that have begun, and of which nothing is known since they are what
  /// they are listed as. All that is not listed is forgotten.
  std::vector<cri::Container> Missing(
      const std::vector<cri::Container>& listed);
  /// Null when nothing is known.
  const cri::ContainerStatus* Find(const std::string& id) const;

 private:
  struct Detail {
    cri::ContainerState listed;
    cri::ContainerStatus status;
  };
  std::map<std::string, Detail> details_;
};

/// The addresses of sandboxes, as far as they were asked for.
class SandboxAddresses {
 public:
  void Put(const std::string& id, const std::vector<std::string>& said);
  /// Ready ones of pods that were not asked about. All that is not listed is
  /// forgotten.
  std::vector<std::string> Missing(const std::vector<cri::Sandbox>& listed);
  std::vector<std::string> Find(const std::string& id) const;

 private:
  std::map<std::string, std::vector<std::string>> addresses_;
};

/// Sandboxes of no pod, and containers whose sandbox is not listed, are left
/// out. A pod that is what it was in `before` is the same pointer.
PodRuns PodRunsOf(const RuntimeLists& lists, const ContainerDetails& details,
                  const SandboxAddresses& addresses, const PodRuns& before);

/// Whether anything of them runs.
bool AnyRuns(const PodRuns& pods);

}  // namespace devmgr::shim
