// SPDX-License-Identifier: Apache-2.0
#include "endpoint/wire_schema.h"

namespace devmgr::endpoint {
namespace {

constexpr WireField Text(std::uint32_t number, std::string_view name) {
  return {number, name, WireType::kString};
}
/// A text that JSON has even if it is empty: one that is required, or that
/// clients send only when it is set.
constexpr WireField ShownText(std::uint32_t number, std::string_view name) {
  return {number,          name,    WireType::kString,
          WireShape::kOne, nullptr, ZeroValue::kShown};
}
constexpr WireField Texts(std::uint32_t number, std::string_view name) {
  return {number, name, WireType::kString, WireShape::kList};
}
constexpr WireField TextMap(std::uint32_t number, std::string_view name) {
  return {number, name, WireType::kString, WireShape::kMap};
}
constexpr WireField Number(std::uint32_t number, std::string_view name,
                           ZeroValue zero = ZeroValue::kShown) {
  return {number, name, WireType::kInteger, WireShape::kOne, nullptr, zero};
}
constexpr WireField Flag(std::uint32_t number, std::string_view name,
                         ZeroValue zero = ZeroValue::kShown) {
  return {number, name, WireType::kBool, WireShape::kOne, nullptr, zero};
}
constexpr WireField Quantity(std::uint32_t number, std::string_view name) {
  return {number, name, WireType::kQuantity};
}
constexpr WireField Time(std::uint32_t number, std::string_view name) {
  return {number, name, WireType::kTime};
}
constexpr WireField MicroTime(std::uint32_t number, std::string_view name) {
  return {number, name, WireType::kMicroTime};
}
constexpr WireField Raw(std::uint32_t number, std::string_view name) {
  return {number, name, WireType::kRaw};
}
constexpr WireField Ignored(std::uint32_t number, std::string_view name) {
  return {number, name, WireType::kIgnored};
}
constexpr WireField One(std::uint32_t number, std::string_view name,
                        const WireMessage& message) {
  return {number, name, WireType::kMessage, WireShape::kOne, &message};
}
constexpr WireField List(std::uint32_t number, std::string_view name,
                         const WireMessage& message) {
  return {number, name, WireType::kMessage, WireShape::kList, &message};
}
constexpr WireField Map(std::uint32_t number, std::string_view name,
                        const WireMessage& message) {
  return {number, name, WireType::kMessage, WireShape::kMap, &message};
}

// Metadata, and what all objects share.

constexpr WireField kOwnerReferenceFields[] = {
    ShownText(1, "kind"),  ShownText(3, "name"),
    ShownText(4, "uid"),   ShownText(5, "apiVersion"),
    Flag(6, "controller"), Flag(7, "blockOwnerDeletion"),
};
constexpr WireMessage kOwnerReference{kOwnerReferenceFields};

constexpr WireField kObjectMetaFields[] = {
    Text(1, "name"),
    Text(2, "generateName"),
    Text(3, "namespace"),
    Ignored(4, "selfLink"),
    Text(5, "uid"),
    Text(6, "resourceVersion"),
    Number(7, "generation", ZeroValue::kLeftOut),
    Time(8, "creationTimestamp"),
    Time(9, "deletionTimestamp"),
    Number(10, "deletionGracePeriodSeconds"),
    TextMap(11, "labels"),
    TextMap(12, "annotations"),
    List(13, "ownerReferences", kOwnerReference),
    Texts(14, "finalizers"),
    Ignored(17, "managedFields"),
};
constexpr WireMessage kObjectMeta{kObjectMetaFields};

constexpr WireField kConditionFields[] = {
    ShownText(1, "type"),
    ShownText(2, "status"),
    Number(3, "observedGeneration", ZeroValue::kLeftOut),
    Time(4, "lastTransitionTime"),
    ShownText(5, "reason"),
    ShownText(6, "message"),
};
constexpr WireMessage kCondition{kConditionFields};

constexpr WireField kPreconditionsFields[] = {
    ShownText(1, "uid"),
    ShownText(2, "resourceVersion"),
};
constexpr WireMessage kPreconditions{kPreconditionsFields};

constexpr WireField kDeleteOptionsFields[] = {
    Number(1, "gracePeriodSeconds"),
    One(2, "preconditions", kPreconditions),
    Flag(3, "orphanDependents"),
    ShownText(4, "propagationPolicy"),
    Texts(5, "dryRun"),
    Flag(6, "ignoreStoreReadErrorWithClusterBreakingPotential"),
};
constexpr WireMessage kDeleteOptions{kDeleteOptionsFields};

constexpr WireField kRequirementFields[] = {
    ShownText(1, "key"),
    ShownText(2, "operator"),
    Texts(3, "values"),
};
constexpr WireMessage kRequirement{kRequirementFields};

constexpr WireField kSelectorTermFields[] = {
    List(1, "matchExpressions", kRequirement),
    List(2, "matchFields", kRequirement),
};
constexpr WireMessage kSelectorTerm{kSelectorTermFields};

constexpr WireField kNodeSelectorFields[] = {
    List(1, "nodeSelectorTerms", kSelectorTerm),
};
constexpr WireMessage kNodeSelector{kNodeSelectorFields};

// Slices.

constexpr WireField kAttributeFields[] = {
    Number(2, "int"),
    Flag(3, "bool"),
    ShownText(4, "string"),
    ShownText(5, "version"),
    {6, "ints", WireType::kInteger, WireShape::kList},
    {7, "bools", WireType::kBool, WireShape::kList},
    Texts(8, "strings"),
    Texts(9, "versions"),
};
constexpr WireMessage kAttribute{kAttributeFields};

constexpr WireField kPolicyRangeFields[] = {
    Quantity(1, "min"),
    Quantity(2, "max"),
    Quantity(3, "step"),
};
constexpr WireMessage kPolicyRange{kPolicyRangeFields};

constexpr WireField kRequestPolicyFields[] = {
    Quantity(1, "default"),
    {3, "validValues", WireType::kQuantity, WireShape::kList},
    One(4, "validRange", kPolicyRange),
};
constexpr WireMessage kRequestPolicy{kRequestPolicyFields};

constexpr WireField kCapacityFields[] = {
    Quantity(1, "value"),
    One(2, "requestPolicy", kRequestPolicy),
};
constexpr WireMessage kCapacity{kCapacityFields};

constexpr WireField kCounterFields[] = {Quantity(1, "value")};
constexpr WireMessage kCounter{kCounterFields};

constexpr WireField kConsumptionFields[] = {
    ShownText(1, "counterSet"),
    Map(2, "counters", kCounter),
    Texts(3, "compatibilityGroups"),
};
constexpr WireMessage kConsumption{kConsumptionFields};

constexpr WireField kCounterSetFields[] = {
    ShownText(1, "name"),
    Map(2, "counters", kCounter),
};
constexpr WireMessage kCounterSet{kCounterSetFields};

constexpr WireField kTaintFields[] = {
    ShownText(1, "key"),
    Text(2, "value"),
    ShownText(3, "effect"),
    Time(4, "timeAdded"),
};
constexpr WireMessage kTaint{kTaintFields};

constexpr WireField kNodeMappingFields[] = {
    ShownText(1, "capacityKey"),
    Quantity(2, "capacityMultiplier"),
    Quantity(3, "deviceMultiplier"),
};
constexpr WireMessage kNodeMapping{kNodeMappingFields};

constexpr WireField kNodeOverheadFields[] = {
    Quantity(1, "perPod"),
    Quantity(2, "perContainer"),
};
constexpr WireMessage kNodeOverhead{kNodeOverheadFields};

constexpr WireField kNodeResourceFields[] = {
    One(3, "mapping", kNodeMapping),
    One(4, "overhead", kNodeOverhead),
};
constexpr WireMessage kNodeResource{kNodeResourceFields};

constexpr WireField kDeviceFields[] = {
    ShownText(1, "name"),
    Map(2, "attributes", kAttribute),
    Map(3, "capacity", kCapacity),
    List(4, "consumesCounters", kConsumption),
    ShownText(5, "nodeName"),
    One(6, "nodeSelector", kNodeSelector),
    Flag(7, "allNodes"),
    List(8, "taints", kTaint),
    Flag(9, "bindsToNode"),
    Texts(10, "bindingConditions"),
    Texts(11, "bindingFailureConditions"),
    Flag(12, "allowMultipleAllocations"),
    Map(14, "nodeAllocatableResources", kNodeResource),
};
constexpr WireMessage kDevice{kDeviceFields};

constexpr WireField kBasicDeviceFields[] = {
    Map(1, "attributes", kAttribute),
    Map(2, "capacity", kCapacity),
    List(3, "consumesCounters", kConsumption),
    ShownText(4, "nodeName"),
    One(5, "nodeSelector", kNodeSelector),
    Flag(6, "allNodes"),
    List(7, "taints", kTaint),
    Flag(8, "bindsToNode"),
    Texts(9, "bindingConditions"),
    Texts(10, "bindingFailureConditions"),
    Flag(11, "allowMultipleAllocations"),
    Map(14, "nodeAllocatableResources", kNodeResource),
};
constexpr WireMessage kBasicDevice{kBasicDeviceFields};

constexpr WireField kDeviceBeta1Fields[] = {
    ShownText(1, "name"),
    One(2, "basic", kBasicDevice),
};
constexpr WireMessage kDeviceBeta1{kDeviceBeta1Fields};

constexpr WireField kPoolFields[] = {
    ShownText(1, "name"),
    Number(2, "generation"),
    Number(3, "resourceSliceCount"),
};
constexpr WireMessage kPool{kPoolFields};

constexpr WireField kSliceSpecFields[] = {
    ShownText(1, "driver"),
    One(2, "pool", kPool),
    Text(3, "nodeName"),
    One(4, "nodeSelector", kNodeSelector),
    Flag(5, "allNodes", ZeroValue::kLeftOut),
    List(6, "devices", kDevice),
    Flag(7, "perDeviceNodeSelection"),
    List(8, "sharedCounters", kCounterSet),
    ShownText(9, "partitionTypeAttribute"),
    Texts(10, "skipNodeOperations"),
};
constexpr WireMessage kSliceSpec{kSliceSpecFields};

constexpr WireField kSliceSpecBeta1Fields[] = {
    ShownText(1, "driver"),
    One(2, "pool", kPool),
    Text(3, "nodeName"),
    One(4, "nodeSelector", kNodeSelector),
    Flag(5, "allNodes", ZeroValue::kLeftOut),
    List(6, "devices", kDeviceBeta1),
    Flag(7, "perDeviceNodeSelection"),
    List(8, "sharedCounters", kCounterSet),
    ShownText(9, "partitionTypeAttribute"),
    Texts(10, "skipNodeOperations"),
};
constexpr WireMessage kSliceSpecBeta1{kSliceSpecBeta1Fields};

constexpr WireField kSliceFields[] = {
    One(1, "metadata", kObjectMeta),
    One(2, "spec", kSliceSpec),
};
constexpr WireMessage kSlice{kSliceFields};

constexpr WireField kSliceBeta1Fields[] = {
    One(1, "metadata", kObjectMeta),
    One(2, "spec", kSliceSpecBeta1),
};
constexpr WireMessage kSliceBeta1{kSliceBeta1Fields};

// Claims: of what a client sends only the status is taken.

constexpr WireField kNetworkDataFields[] = {
    Text(1, "interfaceName"),
    Texts(2, "ips"),
    Text(3, "hardwareAddress"),
};
constexpr WireMessage kNetworkData{kNetworkDataFields};

constexpr WireField kDeviceStatusFields[] = {
    ShownText(1, "driver"),  ShownText(2, "pool"),
    ShownText(3, "device"),  List(4, "conditions", kCondition),
    Raw(5, "data"),          One(6, "networkData", kNetworkData),
    ShownText(7, "shareID"),
};
constexpr WireMessage kDeviceStatus{kDeviceStatusFields};

constexpr WireField kClaimStatusFields[] = {
    Ignored(1, "allocation"),
    Ignored(2, "reservedFor"),
    Ignored(3, "deallocationRequested"),
    List(4, "devices", kDeviceStatus),
};
constexpr WireMessage kClaimStatus{kClaimStatusFields};

constexpr WireField kClaimFields[] = {
    One(1, "metadata", kObjectMeta),
    Ignored(2, "spec"),
    One(3, "status", kClaimStatus),
};
constexpr WireMessage kClaim{kClaimFields};

// Events.

constexpr WireField kReferenceFields[] = {
    Text(1, "kind"),      Text(2, "namespace"),  Text(3, "name"),
    Text(4, "uid"),       Text(5, "apiVersion"), Text(6, "resourceVersion"),
    Text(7, "fieldPath"),
};
constexpr WireMessage kReference{kReferenceFields};

constexpr WireField kEventSourceFields[] = {
    Text(1, "component"),
    Text(2, "host"),
};
constexpr WireMessage kEventSource{kEventSourceFields};

constexpr WireField kSeriesFields[] = {
    Number(1, "count", ZeroValue::kLeftOut),
    MicroTime(2, "lastObservedTime"),
};
constexpr WireMessage kSeries{kSeriesFields};

constexpr WireField kEventFields[] = {
    One(1, "metadata", kObjectMeta),
    One(2, "involvedObject", kReference),
    Text(3, "reason"),
    Text(4, "message"),
    One(5, "source", kEventSource),
    Time(6, "firstTimestamp"),
    Time(7, "lastTimestamp"),
    Number(8, "count", ZeroValue::kLeftOut),
    Text(9, "type"),
    MicroTime(10, "eventTime"),
    One(11, "series", kSeries),
    Text(12, "action"),
    One(13, "related", kReference),
    Text(14, "reportingComponent"),
    Text(15, "reportingInstance"),
};
constexpr WireMessage kEvent{kEventFields};

constexpr WireField kNewEventFields[] = {
    One(1, "metadata", kObjectMeta),
    MicroTime(2, "eventTime"),
    One(3, "series", kSeries),
    Text(4, "reportingController"),
    Text(5, "reportingInstance"),
    Text(6, "action"),
    Text(7, "reason"),
    One(8, "regarding", kReference),
    One(9, "related", kReference),
    Text(10, "note"),
    Text(11, "type"),
    One(12, "deprecatedSource", kEventSource),
    Time(13, "deprecatedFirstTimestamp"),
    Time(14, "deprecatedLastTimestamp"),
    Number(15, "deprecatedCount", ZeroValue::kLeftOut),
};
constexpr WireMessage kNewEvent{kNewEventFields};

// Reviews.

constexpr WireField kResourceAttributesFields[] = {
    Text(1, "namespace"),
    Text(2, "verb"),
    Text(3, "group"),
    Text(4, "version"),
    Text(5, "resource"),
    Text(6, "subresource"),
    Text(7, "name"),
    Ignored(8, "fieldSelector"),
    Ignored(9, "labelSelector"),
};
constexpr WireMessage kResourceAttributes{kResourceAttributesFields};

constexpr WireField kPathAttributesFields[] = {
    Text(1, "path"),
    Text(2, "verb"),
};
constexpr WireMessage kPathAttributes{kPathAttributesFields};

constexpr WireField kReviewSpecFields[] = {
    One(1, "resourceAttributes", kResourceAttributes),
    One(2, "nonResourceAttributes", kPathAttributes),
};
constexpr WireMessage kReviewSpec{kReviewSpecFields};

constexpr WireField kReviewFields[] = {
    One(1, "metadata", kObjectMeta),
    One(2, "spec", kReviewSpec),
    Ignored(3, "status"),
};
constexpr WireMessage kReview{kReviewFields};

struct KnownKind {
  std::string_view api_version;  ///< Empty: any.
  std::string_view kind;
  const WireMessage* message;
};

constexpr KnownKind kKnownKinds[] = {
    {"resource.k8s.io/v1", "ResourceSlice", &kSlice},
    {"resource.k8s.io/v1beta2", "ResourceSlice", &kSlice},
    {"resource.k8s.io/v1beta1", "ResourceSlice", &kSliceBeta1},
    {"resource.k8s.io/v1", "ResourceClaim", &kClaim},
    {"resource.k8s.io/v1beta2", "ResourceClaim", &kClaim},
    {"resource.k8s.io/v1beta1", "ResourceClaim", &kClaim},
    {"v1", "Event", &kEvent},
    {"events.k8s.io/v1", "Event", &kNewEvent},
    {"authorization.k8s.io/v1", "SelfSubjectAccessReview", &kReview},
    {"", "DeleteOptions", &kDeleteOptions},
};

}  // namespace

const WireMessage* FindWireMessage(std::string_view api_version,
                                   std::string_view kind) {
  for (const KnownKind& known : kKnownKinds) {
    if (known.kind == kind &&
        (known.api_version.empty() || known.api_version == api_version)) {
      return known.message;
    }
  }
  return nullptr;
}

}  // namespace devmgr::endpoint
