// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/status.h>
#include <devmgr/device_manager.h>

#include <functional>
#include <map>
#include <set>
#include <string>

#include "common/executor.h"
#include "ledger/container_use.h"
#include "ledger/ledger.h"
#include "plugin/plugins.h"
#include "pods/device_admission.h"
#include "pods/local_claims.h"
#include "resources/device_book.h"
#include "state/state.h"
#include "upkeep/health_keeper.h"
#include "upkeep/spec_keeper.h"

namespace devmgr::pods {

/// What device plugins have to do with the containers of a Ready pod, once its
/// devices are chosen: before each start of a container, and when its init
/// containers have ended. The ledger says which plugins a container depends on,
/// so that none is left out because it is not back yet. Lives on the manager's
/// thread. Errors are those of DeviceManager.
class ContainerStarts {
 public:
  /// Everything is borrowed and must outlive this.
  struct Parts {
    Executor& executor;
    ledger::Ledger& ledger;
    const state::State& state;  ///< The durable projection on this thread.
    const resources::DeviceBook& devices;
    const upkeep::HealthKeeper& health;
    DeviceAdmission& admission;
    plugin::Plugins& plugins;
    upkeep::SpecKeeper& specs;
    ledger::ContainerUse& use;
    std::string boot_id;
    Profile profile = Profile::kDefault;
    /// The claims that this node allocates; null, or gives null: none.
    std::function<LocalClaims*()> claims = nullptr;
  };
  using Done = DeviceManager::Done;

  explicit ContainerStarts(Parts parts) : parts_(std::move(parts)) {}

  /// Looks for the CDI specs of its claims, gets devices for an init container
  /// that has given its own back, then asks the plugins for PreStartContainer,
  /// all at once.
  void BeforeStart(OperationId id, const PodUid& pod,
                   const ContainerName& container, Done done);

  void ReleaseInit(OperationId id, const PodUid& pod, Done done);

  /// Completes it with Cancelled.
  void Cancel(OperationId id);
  /// All of them, and those that come later.
  void Stop();

 private:
  absl::Status WhyNotReady(const PodUid& uid, const absl::Status& found) const;
  /// What does not work of it goes back, for others in its place; then goes on.
  void GiveBackFaulty(OperationId id, const PodUid& uid,
                      const ContainerName& container,
                      const std::set<ResourceName>& resources);
  /// Whether there would be others for the container.
  ///   Unavailable  not now
  absl::Status CheckOthers(const state::PodRecord& pod,
                           const ContainerName& container,
                           const std::set<ResourceName>& resources) const;
  /// Claims of the container have other devices from now on: it starts when
  /// these are prepared. False: there is nothing to be exchanged.
  bool ExchangeClaims(OperationId id, const state::PodRecord& pod,
                      const ContainerName& container);
  void LookAtSpecs(OperationId id, const state::PodRecord& pod,
                   const ContainerName& container);
  void OnSpecs(OperationId id, const PodUid& uid,
               const ContainerName& container, const absl::Status& status);
  void GetDevicesAnew(OperationId id, const state::PodRecord& pod,
                      const ContainerName& container);
  /// Whether the plugin wants to be asked: by what the living instance says,
  /// and by what the ledger remembers while there is none.
  bool WantsPreStart(const state::DeviceHold& hold) const;
  void AskPlugins(OperationId id, const state::PodRecord& pod,
                  const ContainerName& container);
  void End(OperationId id, const absl::Status& status);

  const Parts parts_;
  std::map<OperationId, Done> pending_;
  bool stopped_ = false;
};

}  // namespace devmgr::pods
