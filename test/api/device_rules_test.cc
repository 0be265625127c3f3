// SPDX-License-Identifier: Apache-2.0
//
// The rules of devices and slices: what breaks one is an error with its place.
// A number such as AL-044 names a scenario of allocation.
#include <absl/strings/str_cat.h>
#include <devmgr/manifests.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <variant>
#include <vector>

#include "api/only_error.h"
#include "api/rule_cases.h"

namespace devmgr {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr const char* kPoolOfOne =
    "driver: d.com, pool: {name: p, resourceSliceCount: 1}, ";

DecodedManifest DecodeSliceSpec(const std::string& spec,
                                const std::string& version = "v1") {
  return DecodeManifest("apiVersion: resource.k8s.io/" + version +
                            "\nkind: ResourceSlice\nmetadata: {name: s}\n"
                            "spec: {" +
                            kPoolOfOne + spec + "}\n",
                        "slice.yaml");
}

/// A slice with one device, which has these fields besides its name.
DecodedManifest DecodeDevice(const std::string& fields) {
  return DecodeSliceSpec("allNodes: true, devices: [{name: g, " + fields +
                         "}]");
}

DecodedManifest DecodeCapacity(const std::string& capacity) {
  return DecodeDevice(
      "allowMultipleAllocations: true, capacity: {c: {value: 10, "
      "requestPolicy: {" +
      capacity + "}}}");
}

// AL-044
TEST(DeviceRules, ListsAsAttributes) {
  const std::vector<RuleCase> kCases = {
      {"attributes: {x: {}}",
       "devices[0].attributes[x]: has 0 values; exactly"},
      {"attributes: {x: {ints: []}}",
       "devices[0].attributes[x].ints: is empty, one value at least"},
      {"attributes: {x: {ints: [1], int: 1}}", "attributes[x]: has 2 values"},
      {"attributes: {x: {ints: [a]}}",
       "attributes[x].ints[0]: must be an integer"},
      {"attributes: {x: {bools: [true, null]}}",
       "attributes[x].bools[1]: is null, a value is required"},
      {"attributes: {x: {strings: [a, " + std::string(65, 'b') + "]}}",
       "attributes[x].strings[1]: has 65 bytes, at most 64"},
      {"attributes: {x: {versions: [1.0.0, v1]}}",
       "attributes[x].versions[1]: 'v1' is not a semantic version"},
      {"attributes: {x: {ints: {a: 1}}}",
       "attributes[x].ints: must be a list, is a map"},
      {"attributes: {x: {ints: [" + Numbered(48, "", ",") + "]}, y: {int: 1}}",
       "devices[0]: has 49 values of attributes, at most 48"},
  };
  for (const RuleCase& c : kCases) {
    EXPECT_THAT(OnlyError(DecodeDevice(c.text)), HasSubstr(c.problem))
        << c.text;
  }
  ExpectFine(
      DecodeDevice("attributes: {x: {ints: [" + Numbered(48, "", ",") + "]}}"),
      "48 values");
}

TEST(DeviceRules, Taints) {
  const std::vector<RuleCase> kCases = {
      {"{effect: None}", "devices[0].taints[0].key: is required"},
      {"{key: -a, effect: None}", "taints[0].key: '-a' is not a qualified"},
      {"{key: a, value: -b, effect: None}",
       "taints[0].value: '-b' is not a label's value"},
      {"{key: a}", "taints[0].effect: is required"},
      {"{key: a, effect: PreferNoSchedule}",
       "taints[0].effect: 'PreferNoSchedule' is unknown; 'None', 'NoSchedule' "
       "and 'NoExecute' are known"},
      {"{key: a, effect: None, timeAdded: now}",
       "taints[0].timeAdded: 'now' is not a time"},
      {"null", "taints[0]: must be a map, is null"},
      {Numbered(17, "{effect: None, key: a", "},"),
       "taints: has 17 entries, at most 16"},
  };
  for (const RuleCase& c : kCases) {
    EXPECT_THAT(OnlyError(DecodeDevice("taints: [" + c.text + "]")),
                HasSubstr(c.problem))
        << c.text;
  }
}

TEST(DeviceRules, ConsumedCounters) {
  const std::string kCounters = "counters: {c: {value: 1}}";
  const std::vector<RuleCase> kCases = {
      {"{" + kCounters + "}",
       "devices[0].consumesCounters[0].counterSet: is required"},
      {"{counterSet: A, " + kCounters + "}",
       "[0].counterSet: 'A' is not a DNS label"},
      {"{counterSet: a}", "[0].counters: is required, with one counter"},
      {"{counterSet: a, counters: {}}", "[0].counters: is required, with one"},
      {"{counterSet: a, counters: {C: {value: 1}}}",
       "[0].counters[C]: 'C' is not a DNS label"},
      {"{counterSet: a, counters: {c: {}}}",
       "[0].counters[c].value: is required"},
      {"{counterSet: a, counters: {c: 1}}",
       "[0].counters[c]: must be a map, is the number 1"},
      {"{counterSet: a, counters: {c: {value: -1}}}",
       "[0].counters[c].value: '-1' is negative"},
      {"{counterSet: a, counters: {" + Numbered(33, "c", ": {value: 1},") +
           "}}",
       "[0].counters: has 33 entries, at most 32"},
      {"{counterSet: a, " + kCounters + "}, {counterSet: a, " + kCounters + "}",
       "[1].counterSet: the device consumes from 'a' already"},
      {Numbered(3, "{" + kCounters + ", counterSet: a", "},"),
       "consumesCounters: has 3 entries, at most 2"},
      {"{counterSet: a, " + kCounters + ", compatibilityGroups: [x, x]}",
       "[0].compatibilityGroups[1]: 'x' is in the list already"},
      {"{counterSet: a, " + kCounters + ", compatibilityGroups: [a, b, c]}",
       "[0].compatibilityGroups: has 3 entries, at most 2"},
      {"{counterSet: a, " + kCounters + ", compatibilityGroups: [X]}",
       "[0].compatibilityGroups[0]: 'X' is not a DNS label"},
  };
  for (const RuleCase& c : kCases) {
    EXPECT_THAT(OnlyError(DecodeDevice("consumesCounters: [" + c.text + "]")),
                HasSubstr(c.problem))
        << c.text;
  }
}

TEST(DeviceRules, AmountsOfCapacity) {
  const std::vector<RuleCase> kCases = {
      {"capacity: {c: {value: 1, requestPolicy: {default: 1}}}",
       "capacity[c].requestPolicy: needs a device with "
       "allowMultipleAllocations: true"},
      {"capacity: {c: {value: -1}}", "capacity[c].value: '-1' is negative"},
      {"capacity: {c: {value: 10E}}",
       "capacity[c].value: '10E' is more than 9223372036854775807"},
      {"capacity: {a/b/c: {value: 1}}", "capacity[a/b/c]: 'a/b/c' is not an"},
  };
  for (const RuleCase& c : kCases) {
    EXPECT_THAT(OnlyError(DecodeDevice(c.text)), HasSubstr(c.problem))
        << c.text;
  }
  ExpectFine(DecodeDevice("capacity: {c: {value: 16Ei}}"),
             "API servers clamp binary amounts");
}

// AL-109
TEST(DeviceRules, ValidValues) {
  const std::vector<RuleCase> kCases = {
      {"validValues: [1, 3]",
       "requestPolicy.default: is required with validValues"},
      {"default: 1, validValues: [3, 1]",
       "requestPolicy.validValues[1]: '1' is not more than the one before, 3"},
      {"default: 1, validValues: [1, 1000m]",
       "validValues[1]: '1000m' is not more than the one before, 1"},
      {"default: 1, validValues: [1, 11]",
       "validValues[1]: '11' is more than 10, the value of the capacity"},
      {"default: 2, validValues: [1, 3]",
       "requestPolicy.validValues: the default, 2, is none of them"},
      {"default: 0, validValues: [" + Numbered(11, "", ",") + "]",
       "validValues: has 11 entries, at most 10"},
      {"default: 1, validValues: [1], validRange: {min: 1}",
       "requestPolicy: has validValues and validRange; only one"},
      {"default: x", "requestPolicy.default: 'x' is not a quantity"},
      {"default: -1", "requestPolicy.default: '-1' is negative"},
  };
  for (const RuleCase& c : kCases) {
    const DecodedManifest manifest = DecodeCapacity(c.text);
    ASSERT_FALSE(manifest.errors.empty()) << c.text;
    EXPECT_THAT(manifest.errors[0].ToString(), HasSubstr(c.problem)) << c.text;
  }
  for (const char* fine :
       {"", "default: 7", "validValues: []", "default: 1, validValues: [1, 3]",
        "default: 500m, validValues: [500m, 1]"}) {
    ExpectFine(DecodeCapacity(fine), fine);
  }
}

// AL-059
TEST(DeviceRules, ValidRange) {
  const std::vector<RuleCase> kCases = {
      {"validRange: {min: 2}",
       "requestPolicy.default: is required with validRange"},
      {"default: 2, validRange: {max: 4}",
       "requestPolicy.validRange.min: is required"},
      {"default: 11, validRange: {min: 11}",
       "validRange.min: '11' is more than 10, the value of the capacity"},
      {"default: 1, validRange: {min: 2}",
       "requestPolicy.default: '1' is less than 2, the least of the range"},
      {"default: 5, validRange: {min: 2, max: 4}",
       "requestPolicy.default: '5' is more than 4, the most of the range"},
      {"default: 2, validRange: {min: 2, max: 11}",
       "validRange.max: '11' is more than 10"},
      {"default: 2, validRange: {min: 2, step: 0}",
       "validRange.step: must be more than 0"},
      {"default: 2, validRange: {min: 2, step: 9}",
       "validRange.step: one step above 2 is more than 10"},
      {"default: 3, validRange: {min: 2, step: 2}",
       "validRange.step: the default, 3, is no whole number of steps of 2"},
      {"default: 2, validRange: {min: 2, max: 5, step: 2}",
       "validRange.step: the max, 5, is no whole number of steps of 2 above 2"},
      {"default: 2, validRange: {min: 2, step: 0.3, max: 3}",
       "the max, 3, is no whole number of steps of 0.3 above 2"},
      {"default: 2, validRange: [2]", "validRange: must be a map, is a list"},
  };
  for (const RuleCase& c : kCases) {
    EXPECT_THAT(OnlyError(DecodeCapacity(c.text)), HasSubstr(c.problem))
        << c.text;
  }
  for (const char* fine :
       {"default: 2, validRange: {min: 2, step: 2, max: 4}",
        "default: 2, validRange: {min: 2}",
        "default: 2, validRange: {min: 2, step: 8}",
        "default: 1500m, validRange: {min: 500m, step: 0.25}"}) {
    ExpectFine(DecodeCapacity(fine), fine);
  }
}

TEST(DeviceRules, BindingConditions) {
  const std::vector<RuleCase> kCases = {
      {"bindingConditions: [a]",
       "devices[0].bindingFailureConditions: is required with"},
      {"bindingFailureConditions: [a]",
       "devices[0].bindingConditions: is required with"},
      {"bindingConditions: [a, a], bindingFailureConditions: [b]",
       "bindingConditions[1]: 'a' is in the list already"},
      {"bindingConditions: [a], bindingFailureConditions: [b, b]",
       "bindingFailureConditions[1]: 'b' is in the list already"},
      {"bindingConditions: [a], bindingFailureConditions: [a]",
       "bindingFailureConditions[0]: 'a' is in bindingConditions, too"},
      {"bindingConditions: [a, b, c, d, e], bindingFailureConditions: [f]",
       "bindingConditions: has 5 entries, at most 4"},
      {"bindingConditions: [-a], bindingFailureConditions: [f]",
       "bindingConditions[0]: '-a' is not a qualified name"},
      {"bindingConditions: [a], bindingFailureConditions: {}",
       "bindingFailureConditions: must be a list, is a map"},
  };
  for (const RuleCase& c : kCases) {
    const DecodedManifest manifest = DecodeDevice(c.text);
    ASSERT_FALSE(manifest.errors.empty()) << c.text;
    EXPECT_THAT(manifest.errors[0].ToString(), HasSubstr(c.problem)) << c.text;
  }
}

TEST(DeviceRules, NodeResources) {
  const std::vector<RuleCase> kCases = {
      {"disk: {overhead: {perPod: 1}}",
       "nodeAllocatableResources[disk]: 'disk' cannot be taken"},
      {"cpu: {}", "[cpu]: has neither mapping nor overhead"},
      {"cpu: {mapping: {}}", "[cpu].mapping: must have either capacityKey"},
      {"cpu: {mapping: {capacityKey: c, capacityMultiplier: 1, "
       "deviceMultiplier: 1}}",
       "[cpu].mapping: must have either"},
      {"cpu: {mapping: {capacityKey: c}}",
       "[cpu].mapping.capacityMultiplier: is required"},
      {"cpu: {mapping: {capacityMultiplier: 1}}",
       "[cpu].mapping.capacityKey: is required"},
      {"cpu: {mapping: {capacityKey: d, capacityMultiplier: 1}}",
       "[cpu].mapping.capacityKey: the device has no capacity 'd'"},
      {"cpu: {mapping: {deviceMultiplier: 0}}",
       "[cpu].mapping.deviceMultiplier: must be more than 0"},
      {"cpu: {overhead: {}}", "[cpu].overhead: has neither perPod nor"},
      {"cpu: {overhead: {perPod: -1}}",
       "[cpu].overhead.perPod: '-1' is negative"},
  };
  for (const RuleCase& c : kCases) {
    EXPECT_THAT(OnlyError(DecodeDevice("capacity: {c: {value: 1}}, "
                                       "nodeAllocatableResources: {" +
                                       c.text + "}")),
                HasSubstr(c.problem))
        << c.text;
  }
}

// AL-055
TEST(SliceRules, PlacesOfDevices) {
  const std::vector<RuleCase> kCases = {
      {"allNodes: true, devices: [{name: g, nodeName: node}]",
       "spec.devices[0]: can have nodeName, nodeSelector or allNodes only if"},
      {"perDeviceNodeSelection: true, devices: [{name: g}]",
       "spec.devices[0]: has 0 of nodeName, nodeSelector and allNodes"},
      {"perDeviceNodeSelection: true, devices: [{name: g, nodeName: node, "
       "allNodes: true}]",
       "spec.devices[0]: has 2 of nodeName"},
      {"perDeviceNodeSelection: true, devices: [{name: g, nodeName: ''}]",
       "spec.devices[0].nodeName: is required"},
      {"perDeviceNodeSelection: true, devices: [{name: g, nodeName: Node}]",
       "spec.devices[0].nodeName: 'Node' is not a DNS subdomain"},
      {"perDeviceNodeSelection: true, devices: [{name: g, allNodes: false}]",
       "spec.devices[0].allNodes: can only be true"},
      {"perDeviceNodeSelection: true, devices: [{name: g, nodeSelector: "
       "{nodeSelectorTerms: [{}, {}]}}]",
       "devices[0].nodeSelector.nodeSelectorTerms: has 2 entries; exactly one"},
      {"perDeviceNodeSelection: false", "can only be true"},
  };
  for (const RuleCase& c : kCases) {
    const DecodedManifest manifest = DecodeSliceSpec(c.text);
    ASSERT_FALSE(manifest.errors.empty()) << c.text;
    EXPECT_THAT(manifest.errors[0].ToString(), HasSubstr(c.problem)) << c.text;
  }
}

TEST(SliceRules, NodeSelectors) {
  const std::vector<RuleCase> kCases = {
      {"{}", "nodeSelectorTerms: has 0 entries; exactly one is required"},
      {"{nodeSelectorTerms: [{}, {}]}", "nodeSelectorTerms: has 2 entries"},
      {"{nodeSelectorTerms: {}}", "nodeSelectorTerms: must be a list, is a"},
      {"{nodeSelectorTerms: [{matchExpressions: [{operator: Exists}]}]}",
       "[0].matchExpressions[0].key: is required"},
      {"{nodeSelectorTerms: [{matchExpressions: [{key: -a, operator: "
       "Exists}]}]}",
       "[0].matchExpressions[0].key: '-a' is not a qualified name"},
      {"{nodeSelectorTerms: [{matchExpressions: [{key: a}]}]}",
       "matchExpressions[0].operator: is required"},
      {"{nodeSelectorTerms: [{matchExpressions: [{key: a, operator: Is}]}]}",
       "operator: 'Is' is unknown; 'In', 'NotIn', 'Exists', 'DoesNotExist', "
       "'Gt' and 'Lt' are known"},
      {"{nodeSelectorTerms: [{matchExpressions: [{key: a, operator: In}]}]}",
       "values: is required with In and NotIn"},
      {"{nodeSelectorTerms: [{matchExpressions: [{key: a, operator: Exists, "
       "values: [b]}]}]}",
       "values: must not be given with Exists"},
      {"{nodeSelectorTerms: [{matchExpressions: [{key: a, operator: Gt, "
       "values: ['1', '2']}]}]}",
       "values: has 2 entries; Gt and Lt take exactly one"},
      {"{nodeSelectorTerms: [{matchExpressions: [{key: a, operator: In, "
       "values: [-b]}]}]}",
       "values[0]: '-b' is not a label's value"},
      {"{nodeSelectorTerms: [{matchFields: [{key: spec.x, operator: In, "
       "values: [b]}]}]}",
       "matchFields[0].key: 'spec.x' is not a field of nodes"},
      {"{nodeSelectorTerms: [{matchFields: [{key: metadata.name, operator: "
       "Exists, values: [b]}]}]}",
       "matchFields[0].operator: 'Exists' is unknown; 'In' and 'NotIn' are"},
      {"{nodeSelectorTerms: [{matchFields: [{key: metadata.name, operator: "
       "In, values: [a, b]}]}]}",
       "matchFields[0].values: has 2 entries; a field takes exactly one"},
      {"{nodeSelectorTerms: [{matchFields: [{key: metadata.name, operator: "
       "In, values: [A]}]}]}",
       "matchFields[0].values[0]: 'A' is not a DNS subdomain"},
  };
  for (const RuleCase& c : kCases) {
    EXPECT_THAT(OnlyError(DecodeSliceSpec("nodeSelector: " + c.text)),
                HasSubstr("slice.yaml:4: spec.nodeSelector.nodeSelectorTerms"))
        << c.text;
    EXPECT_THAT(OnlyError(DecodeSliceSpec("nodeSelector: " + c.text)),
                HasSubstr(c.problem))
        << c.text;
  }
}

TEST(SliceRules, SharedCounters) {
  const std::vector<RuleCase> kCases = {
      {"{counters: {c: {value: 1}}}",
       "spec.sharedCounters[0].name: is required"},
      {"{name: A, counters: {c: {value: 1}}}", "[0].name: 'A' is not a DNS"},
      {"{name: a}", "[0].counters: is required"},
      {"{name: a, counters: {c: {value: 1}}}, {name: a, counters: {c: {value: "
       "1}}}",
       "[1].name: 'a' is the name of another counter set"},
      {Numbered(9, "{counters: {c: {value: 1}}, name: a", "},"),
       "sharedCounters: has 9 entries, at most 8"},
  };
  for (const RuleCase& c : kCases) {
    EXPECT_THAT(OnlyError(DecodeSliceSpec("allNodes: true, sharedCounters: [" +
                                          c.text + "]")),
                HasSubstr(c.problem))
        << c.text;
  }
}

TEST(SliceRules, DevicesBesideCountersAreRemarkedOn) {
  const DecodedManifest manifest = DecodeSliceSpec(
      "allNodes: true, devices: [{name: g}], sharedCounters: [{name: a, "
      "counters: {c: {value: 1}}}]");
  ExpectFine(manifest, "of Kubernetes 1.34");
  ASSERT_THAT(manifest.warnings, SizeIs(1));
  EXPECT_THAT(manifest.warnings[0].ToString(),
              HasSubstr("slice.yaml:4: spec.sharedCounters: stands beside"));
}

TEST(SliceRules, FewerDevicesWhereTheyCostMore) {
  const std::string plain = Numbered(64, "{name: g-", "},");
  for (const char* costly :
       {"taints: [{key: a, effect: None}]",
        "consumesCounters: [{counterSet: a, counters: {c: {value: 1}}}]",
        "attributes: {a: {ints: [1]}}"}) {
    const std::string last = absl::StrCat("{name: last, ", costly, "}");
    EXPECT_THAT(OnlyError(DecodeSliceSpec("allNodes: true, devices: [" + plain +
                                          last + "]")),
                HasSubstr("spec.devices: has 65 entries, at most 64"));
    ExpectFine(DecodeSliceSpec("allNodes: true, devices: [" +
                               Numbered(63, "{name: g-", "},") + last + "]"),
               costly);
  }
}

TEST(SliceRules, SkippedOperations) {
  const std::vector<RuleCase> kCases = {
      {"[NodePrepareResources]",
       "spec.skipNodeOperations: has NodePrepareResources without"},
      {"['*', '*']", "skipNodeOperations[1]: '*' is in the list already"},
      {"[Some]", "skipNodeOperations[0]: 'Some' is unknown"},
      {"[null]", "skipNodeOperations[0]: is required"},
  };
  for (const RuleCase& c : kCases) {
    EXPECT_THAT(OnlyError(DecodeSliceSpec(
                    "allNodes: true, skipNodeOperations: " + c.text)),
                HasSubstr(c.problem))
        << c.text;
  }
  ExpectFine(DecodeSliceSpec("allNodes: true, skipNodeOperations: "
                             "[NodePrepareResources, '*']"),
             "all are skipped");
}

TEST(SliceRules, PartitionTypes) {
  const std::string kDevice =
      ", allNodes: true, devices: [{name: g, consumesCounters: [{counterSet: "
      "a, counters: {c: {value: 1}}}], attributes: {kind: {string: x}, "
      "number: {int: 1}}}, {name: h}]";
  const auto decode = [&](const std::string& name) {
    return DecodeSliceSpec("partitionTypeAttribute: " + name + kDevice);
  };
  ExpectFine(decode("d.com/kind"), "in the driver's domain");
  for (const char* name : {"e.com/kind", "d.com/number", "d.com/none"}) {
    EXPECT_THAT(OnlyError(decode(name)),
                HasSubstr("spec.partitionTypeAttribute: device 'g' consumes "
                          "counters and has no attribute"))
        << name;
  }
  EXPECT_THAT(OnlyError(decode("kind")), HasSubstr("'kind' has no domain"));
  EXPECT_THAT(OnlyError(DecodeSliceSpec(
                  "allNodes: true, partitionTypeAttribute: d.com/kind")),
              HasSubstr("needs a device that consumes counters"));
}

TEST(SliceRules, OldVersionsWriteNothingAsEmpty) {
  for (const char* version : {"v1beta1", "v1alpha3"}) {
    const DecodedManifest manifest =
        DecodeSliceSpec("nodeName: '', allNodes: true", version);
    ExpectFine(manifest, version);
    EXPECT_TRUE(
        std::get<ResourceSlice>(manifest.objects.at(0).object).all_nodes);
    ExpectFine(DecodeSliceSpec("nodeName: node, allNodes: false", version),
               version);
    EXPECT_THAT(OnlyError(DecodeSliceSpec("nodeName: ''", version)),
                HasSubstr("spec: has 0 of nodeName"));
  }
}

TEST(SliceRules, OldVersionsHaveAllBelowBasic) {
  const DecodedManifest manifest = DecodeSliceSpec(
      "perDeviceNodeSelection: true, devices: [{name: g, basic: {nodeName: "
      "node, "
      "taints: [{key: a, effect: NoSchedule}], bindsToNode: true}}]",
      "v1beta1");
  ExpectFine(manifest, "v1beta1");
  const SliceDevice& device =
      std::get<ResourceSlice>(manifest.objects.at(0).object).devices.at(0);
  EXPECT_EQ(device.node_name, "node");
  EXPECT_THAT(device.taints, SizeIs(1));
  EXPECT_TRUE(device.binds_to_node);
  EXPECT_THAT(
      OnlyError(DecodeSliceSpec("allNodes: true, devices: [{name: g, basic: "
                                "{taints: [{key: a}]}}]",
                                "v1beta1")),
      HasSubstr("spec.devices[0].basic.taints[0].effect: is required"));
}

DecodedManifest DecodeRule(const std::string& spec,
                           const std::string& version = "v1") {
  return DecodeManifest("apiVersion: resource.k8s.io/" + version +
                            "\nkind: DeviceTaintRule\nmetadata: {name: r}\n" +
                            spec + "\n",
                        "rule.yaml");
}

TEST(TaintRuleRules, Selectors) {
  const std::vector<RuleCase> kCases = {
      {"", "rule.yaml:1: spec: is required"},
      {"spec: {}", "rule.yaml:4: spec.taint: is required"},
      {"spec: {taint: {key: a}}", "spec.taint.effect: is required"},
      {"spec: {taint: {key: a, effect: None}, deviceSelector: {driver: ''}}",
       "spec.deviceSelector.driver: is required"},
      {"spec: {taint: {key: a, effect: None}, deviceSelector: {pool: p//q}}",
       "deviceSelector.pool: 'p//q' is not a pool name"},
      {"spec: {taint: {key: a, effect: None}, deviceSelector: {device: A}}",
       "deviceSelector.device: 'A' is not a DNS label"},
      {"spec: {taint: {key: a, effect: None}, deviceSelector: "
       "{deviceClassName: c}}",
       "deviceSelector.deviceClassName: is no longer supported"},
  };
  for (const RuleCase& c : kCases) {
    EXPECT_THAT(OnlyError(DecodeRule(c.text)), HasSubstr(c.problem)) << c.text;
  }
  for (const char* version : {"v1", "v1beta2", "v1alpha3"}) {
    const DecodedManifest none =
        DecodeRule("spec: {taint: {key: a, effect: None}}", version);
    ExpectFine(none, version);
    EXPECT_FALSE(std::get<DeviceTaintRule>(none.objects.at(0).object)
                     .device_selector.has_value());
  }
  const DecodedManifest all =
      DecodeRule("spec: {taint: {key: a, effect: None}, deviceSelector: {}}");
  ExpectFine(all, "all devices");
  EXPECT_EQ(std::get<DeviceTaintRule>(all.objects.at(0).object).device_selector,
            DeviceTaintSelector());
}

TEST(TaintRuleRules, ItsStatusIsOnlyRemarkedOn) {
  const DecodedManifest manifest = DecodeRule(
      "spec: {taint: {key: a, effect: None}}\nstatus: {conditions: [{type: "
      "a, status: Perhaps, reason: -, lastTransitionTime: x}]}");
  ExpectFine(manifest, "status");
  EXPECT_THAT(manifest.warnings, SizeIs(3));
}

}  // namespace
}  // namespace devmgr
