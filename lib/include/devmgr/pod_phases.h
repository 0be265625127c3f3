// SPDX-License-Identifier: Apache-2.0
//
// The phases of pods, where no API server keeps them: for embedders that run
// the pods of manifests.
#pragma once

#include <devmgr/export.h>
#include <devmgr/host.h>
#include <devmgr/types.h>

#include <memory>
#include <string>

namespace devmgr {

/// The objects of another source, in which the status of pods has the phase
/// that is set here, as the agent of a node writes it where there is an API
/// server. With `Succeeded` or `Failed` the manager releases what a pod holds,
/// and does not admit it again. Nothing is kept on disk: set phases before the
/// manager opens, or pods that are over are admitted again.
class DEVMGR_EXPORT PodPhaseSource : public ObjectSource {
 public:
  /// `objects` is borrowed and must outlive this, which is its subscriber.
  static std::unique_ptr<PodPhaseSource> Make(ObjectSource& objects);

  /// The phase of the pod of this name from now on, whether or not there is
  /// one; empty: what `objects` says. Snapshot has it when this returns; the
  /// subscriber is called on a thread of its own, which sleeps otherwise.
  virtual void SetPhase(const ObjectName& pod, const std::string& phase) = 0;
  /// What was set; else empty.
  virtual std::string PhaseOf(const ObjectName& pod) const = 0;
};

}  // namespace devmgr
