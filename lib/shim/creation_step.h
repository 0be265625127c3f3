// SPDX-License-Identifier: Apache-2.0
//
// What becomes of a container that is to be created when the source of devices
// has answered about its pod. The table is drawn in README.md beside this file,
// and a test holds the two against each other. Pure.
#pragma once

#include <devmgr/cri_shim.h>

#include <string_view>

namespace devmgr::shim {

/// What was done for the container before.
enum class CreationState {
  kAsking,    ///< Its source was asked for devices, and nothing else was.
  kTookBack,  ///< An init container that runs again has asked for new devices.
  kAwaitsSpecs,            ///< A driver was asked for CDI specs that are lost.
  kTookBackAwaitingSpecs,  ///< Both.
};

enum class CreationAnswer {
  kUnknownPod,
  kNotReady,    ///< The pod has no answer yet, or the source is away.
  kRefused,     ///< Any other error.
  kGivenBack,   ///< Its devices were given back when it had ended.
  kLacksSpecs,  ///< No CDI spec declares a device of a claim.
  kHasAll,
};

enum class CreationStep {
  kWait,  ///< For a change of the source, or the end of patience.
  kPass,  ///< It is created without devices.
  kFail,
  kTakeBack,     ///< It asks for devices again.
  kAskForSpecs,  ///< A driver is asked to prepare again.
  kInject,
};

/// `patient`: there is time to wait. `unknown`: what is to become of containers
/// of unknown pods.
CreationStep NextStep(CreationState state, CreationAnswer answer, bool patient,
                      UnknownSandbox unknown);

/// The state once `step` was taken.
CreationState After(CreationState state, CreationStep step);

std::string_view CreationStateName(CreationState state);
std::string_view CreationAnswerName(CreationAnswer answer);
std::string_view CreationStepName(CreationStep step);

}  // namespace devmgr::shim
