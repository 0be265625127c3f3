// SPDX-License-Identifier: Apache-2.0
#include <devmgr/host.h>

namespace devmgr {

// What a sink need not do.

void ObjectSink::KeepResourceSlices(const std::string&) {}

void ObjectSink::SetNodeStatus(const NodeDeviceStatus&) {}

void ObjectSink::RecordEvent(const EventInfo&) {}

void ObjectSink::ReportProblems(
    std::function<void(const std::string& reason,
                       const std::string& message)>) {}

bool ObjectSink::IsNodeAgent() const { return false; }

void ObjectSink::SetPodStatus(const ObjectName&, const PodUid&,
                              const ReportedPodStatus&) {}

void ObjectSink::FinishPod(const ObjectName&, const PodUid&) {}

}  // namespace devmgr
