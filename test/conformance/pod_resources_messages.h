// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <google/protobuf/message_lite.h>

#include <map>
#include <memory>
#include <string>

namespace devmgr::conformance {

/// By the name of the sample.
using Messages =
    std::map<std::string, std::shared_ptr<google::protobuf::MessageLite>>;

/// What the samples of pod-resources hold, said once more by hand.
Messages PodResourcesMessages();
/// The same of v1alpha1.
Messages OldPodResourcesMessages();

}  // namespace devmgr::conformance
