// SPDX-License-Identifier: Apache-2.0
//
// Between devmgr/status_types.h and the messages of the inspection service;
// the only place that knows both. Text that came from outside (errors of
// drivers, paths) may hold bytes that are not UTF-8, which protobuf would
// refuse to read back: those become U+FFFD.
#pragma once

#include <absl/status/statusor.h>
#include <devmgr/container_devices.h>
#include <devmgr/device_changes.h>
#include <devmgr/device_holders.h>
#include <devmgr/fsck.h>
#include <devmgr/inspection/v1/inspection.pb.h>
#include <devmgr/runtime_report.h>
#include <devmgr/source_info.h>
#include <devmgr/status_types.h>

#include <optional>
#include <string>
#include <string_view>

namespace devmgr::server {

namespace pb = ::devmgr::inspection::v1;

/// Method paths of the service.
inline constexpr std::string_view kServicePath =
    "/devmgr.inspection.v1.Inspector/";

/// `text` with every byte that is not part of valid UTF-8 replaced.
std::string ValidUtf8(std::string_view text);

pb::ObjectName ToProto(const ObjectName& name);
pb::RecoveryInfo ToProto(const RecoveryInfo& info);
pb::NodeInfo ToProto(const NodeInfo& info);
pb::PodInfo ToProto(const PodInfo& info);
pb::ClaimInfo ToProto(const ClaimInfo& info);
pb::PluginInfo ToProto(const PluginInfo& info);
pb::DeviceInfo ToProto(const DeviceInfo& info);
pb::DebtInfo ToProto(const DebtInfo& info);
pb::ResourceInfo ToProto(const ResourceInfo& info);
pb::ResourceOwner ToProto(ResourceOwner owner);
pb::DeviceClassInfo ToProto(const DeviceClassInfo& info);
pb::SliceInfo ToProto(const SliceInfo& info);
pb::NumaInfo ToProto(const NumaInfo& info);
pb::PodAlignment ToProto(const PodAlignmentInfo& info);
pb::EventInfo ToProto(const EventInfo& info);
pb::DecisionInfo ToProto(const DecisionInfo& info);
pb::ChangeToken ToProto(const ChangeToken& token);
pb::DeviceChange ToProto(const DeviceChange& change);
pb::ChangesResponse ToProto(const DeviceChanges& changes);
pb::ChangesRequest ToProto(const ChangesFrom& from);
pb::LedgerView ToProto(const LedgerView& view);
pb::StateAtRequest ToProto(const LedgerPoint& at);
pb::ContainerDevices ToProto(const ContainerDevices& devices);
pb::PodDevices ToProto(const PodDevices& devices);
pb::FsckReport ToProto(const FsckReport& report);
pb::RuntimeReport ToProto(const RuntimeReport& report);
pb::ForeignHolderInfo ToProto(const ForeignHolderInfo& info);
pb::DeviceHolderInfo ToProto(const DeviceHolderInfo& info);
pb::SourceInfo ToProto(const SourceInfo& info);

ObjectName FromProto(const pb::ObjectName& name);
RecoveryInfo FromProto(const pb::RecoveryInfo& info);
NodeInfo FromProto(const pb::NodeInfo& info);
/// InvalidArgument for a state or kind this version does not know.
absl::StatusOr<PodInfo> FromProto(const pb::PodInfo& info);
ClaimInfo FromProto(const pb::ClaimInfo& info);
PluginInfo FromProto(const pb::PluginInfo& info);
DeviceInfo FromProto(const pb::DeviceInfo& info);
DebtInfo FromProto(const pb::DebtInfo& info);
ResourceInfo FromProto(const pb::ResourceInfo& info);
/// Nothing: the number means none.
std::optional<ResourceOwner> FromProto(pb::ResourceOwner owner);
DeviceClassInfo FromProto(const pb::DeviceClassInfo& info);
SliceInfo FromProto(const pb::SliceInfo& info);
NumaInfo FromProto(const pb::NumaInfo& info);
PodAlignmentInfo FromProto(const pb::PodAlignment& info);
EventInfo FromProto(const pb::EventInfo& info);
DecisionInfo FromProto(const pb::DecisionInfo& info);
ChangeToken FromProto(const pb::ChangeToken& token);
DeviceChange FromProto(const pb::DeviceChange& change);
DeviceChanges FromProto(const pb::ChangesResponse& response);
ChangesFrom FromProto(const pb::ChangesRequest& request);
/// InvalidArgument as for PodInfo.
absl::StatusOr<LedgerView> FromProto(const pb::LedgerView& view);
LedgerPoint FromProto(const pb::StateAtRequest& at);
PodDevices FromProto(const pb::PodDevices& devices);
FsckReport FromProto(const pb::FsckReport& report);
RuntimeReport FromProto(const pb::RuntimeReport& report);
ForeignHolderInfo FromProto(const pb::ForeignHolderInfo& info);
DeviceHolderInfo FromProto(const pb::DeviceHolderInfo& message);
SourceInfo FromProto(const pb::SourceInfo& info);

}  // namespace devmgr::server
