// SPDX-License-Identifier: Apache-2.0
#include <devmgr/manifests.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <variant>

#include "api/only_error.h"

namespace devmgr {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr const char* kPool =
    "driver: d.com, nodeName: node, pool: {name: p, generation: 1, "
    "resourceSliceCount: 1}";

/// A slice whose spec has these fields, in flow style.
DecodedManifest DecodeSlice(const std::string& spec,
                            const std::string& version = "v1",
                            const std::string& node_name = "") {
  return DecodeManifest("apiVersion: resource.k8s.io/" + version +
                            "\nkind: ResourceSlice\nmetadata: {name: s}\n"
                            "spec: {" +
                            spec + "}\n",
                        "slice.yaml", node_name);
}

DecodedManifest DecodeDevices(const std::string& devices,
                              const std::string& version = "v1") {
  return DecodeSlice(std::string(kPool) + ", devices: [" + devices + "]",
                     version);
}

ResourceSlice OnlySlice(const DecodedManifest& manifest) {
  for (const ManifestProblem& problem : manifest.errors) {
    ADD_FAILURE() << problem.ToString();
  }
  if (manifest.objects.size() != 1) {
    ADD_FAILURE() << manifest.objects.size() << " objects";
    return {};
  }
  return std::get<ResourceSlice>(manifest.objects[0].object);
}

TEST(DecodeResourceSlice, ReadsDevicesFromAllVersions) {
  const std::string content =
      "attributes: {a: {int: 7}}, capacity: {m: {value: 1Gi}}";
  const struct {
    const char* version;
    std::string device;
  } kCases[] = {{"v1", "{name: g, " + content + "}"},
                {"v1beta2", "{name: g, " + content + "}"},
                {"v1beta1", "{name: g, basic: {" + content + "}}"}};
  for (const auto& c : kCases) {
    const ResourceSlice slice = OnlySlice(DecodeDevices(c.device, c.version));
    ASSERT_THAT(slice.devices, SizeIs(1));
    EXPECT_EQ(slice.devices[0].attributes.at("a"),
              DeviceAttribute(std::int64_t{7}));
    EXPECT_EQ(slice.devices[0].capacity.at("m").value.whole, 1 << 30);
    EXPECT_EQ(slice.pool, "p");
    EXPECT_EQ(slice.node_name, "node");
  }
}

TEST(DecodeResourceSlice, NamesAMissingPoolAfterTheNodeOfTheSlice) {
  const DecodedManifest manifest =
      DecodeSlice("driver: d.com, nodeName: node", "v1", "here");
  const ResourceSlice slice = OnlySlice(manifest);
  EXPECT_EQ(slice.pool, "node");
  EXPECT_EQ(slice.pool_generation, 1);
  EXPECT_EQ(slice.pool_slice_count, 1);
  ASSERT_THAT(manifest.warnings, SizeIs(1));
  EXPECT_THAT(manifest.warnings[0].ToString(),
              HasSubstr("slice.yaml:4: spec.pool: is missing"));
}

TEST(DecodeResourceSlice, NamesAMissingPoolAfterThisNodeOtherwise) {
  EXPECT_EQ(
      OnlySlice(DecodeSlice("driver: d.com, allNodes: true", "v1", "here"))
          .pool,
      "here");
  EXPECT_THAT(OnlyError(DecodeSlice("driver: d.com, allNodes: true")),
              HasSubstr("spec.pool: is required"));
}

TEST(DecodeResourceSlice, AcceptsEveryWayToSayWhere) {
  const std::string rest =
      "driver: d.com, pool: {name: p, resourceSliceCount: 2}, ";
  EXPECT_TRUE(OnlySlice(DecodeSlice(rest + "allNodes: true")).all_nodes);
  OnlySlice(DecodeSlice(rest + "nodeSelector: {nodeSelectorTerms: [{}]}"));
  OnlySlice(DecodeSlice(rest + "perDeviceNodeSelection: true"));
  EXPECT_EQ(OnlySlice(DecodeSlice(rest + "nodeName: node")).pool_generation, 0);
}

TEST(DecodeResourceSlice, RefusesBadSpecs) {
  const struct {
    const char* spec;
    const char* problem;
  } kCases[] = {
      {"nodeName: node, pool: {name: p, resourceSliceCount: 1}",
       "spec.driver: is required"},
      {"driver: D, nodeName: node, pool: {name: p, resourceSliceCount: 1}",
       "spec.driver: 'D': invalid DRA driver name"},
      {"driver: d, pool: {name: p, resourceSliceCount: 1}",
       "spec: has 0 of nodeName"},
      {"driver: d, nodeName: node, allNodes: true, pool: {name: p, "
       "resourceSliceCount: 1}",
       "spec: has 2 of nodeName"},
      {"driver: d, allNodes: false, pool: {name: p, resourceSliceCount: 1}",
       "spec.allNodes: can only be true"},
      {"driver: d, allNodes: 'true', pool: {name: p, resourceSliceCount: 1}",
       "spec.allNodes: must be a boolean"},
      {"driver: d, nodeName: '', pool: {name: p, resourceSliceCount: 1}",
       "spec.nodeName: is required"},
      {"driver: d, nodeName: node, pool: {resourceSliceCount: 1}",
       "spec.pool.name: is required"},
      {"driver: d, nodeName: node, pool: {name: P, resourceSliceCount: 1}",
       "spec.pool.name: 'P' is not a pool name"},
      {"driver: d, nodeName: node, pool: {name: p}",
       "spec.pool.resourceSliceCount: is required"},
      {"driver: d, nodeName: node, pool: {name: p, resourceSliceCount: 0}",
       "spec.pool.resourceSliceCount: 0 is out of range"},
      {"driver: d, nodeName: node, pool: {name: p, generation: -1, "
       "resourceSliceCount: 1}",
       "spec.pool.generation: -1 is out of range"},
      {"driver: d, nodeName: node, pool: p", "spec.pool: must be a map"},
  };
  for (const auto& c : kCases) {
    EXPECT_THAT(OnlyError(DecodeSlice(c.spec)), HasSubstr(c.problem)) << c.spec;
  }
  EXPECT_THAT(OnlyError(DecodeManifest(
                  "apiVersion: resource.k8s.io/v1\nkind: ResourceSlice\n"
                  "metadata: {name: s}\n",
                  "slice.yaml")),
              HasSubstr("spec: is required"));
}

TEST(DecodeResourceSlice, RefusesBadDevices) {
  const struct {
    const char* device;
    const char* problem;
  } kCases[] = {
      {"{}", "devices[0].name: is required"},
      {"{name: a.b}", "devices[0].name: 'a.b' is not a DNS label"},
      {"{name: a}, {name: a}", "devices[1].name: 'a' is the name of another"},
      {"null", "devices[0]: must be a map, is null"},
      {"{name: a, attributes: {x: {}}}",
       "attributes[x]: has 0 values; exactly one"},
      {"{name: a, attributes: {x: {int: 1, bool: true}}}", "has 2 values"},
      {"{name: a, attributes: {x: 7}}", "attributes[x]: must be a map"},
      {"{name: a, attributes: {x: {int: '1'}}}",
       "attributes[x].int: must be an integer"},
      {"{name: a, attributes: {x: {string: 1}}}",
       "attributes[x].string: must be a string"},
      {"{name: a, attributes: {x: {version: 1.2.3.4}}}",
       "attributes[x].version: '1.2.3.4' is not a semantic version"},
      {"{name: a, attributes: {0x: {int: 1}}}",
       "'0x' is not an attribute name"},
      {"{name: a, attributes: {a/b/c: {int: 1}}}", "'a/b/c' is not an"},
      {"{name: a, attributes: {D/x: {int: 1}}}", "the domain of 'D/x'"},
      {"{name: a, capacity: {x: {}}}", "capacity[x].value: is required"},
      {"{name: a, capacity: {x: {value: many}}}", "'many' is not a quantity"},
      {"{name: a, capacity: {x-y: {value: 1}}}", "'x-y' is not an attribute"},
  };
  for (const auto& c : kCases) {
    EXPECT_THAT(OnlyError(DecodeDevices(c.device)), HasSubstr(c.problem))
        << c.device;
  }
}

TEST(DecodeResourceSlice, HoldsListsToTheirLimits) {
  std::string devices;
  for (int i = 0; i < 128; ++i) {
    devices += "{name: d-" + std::to_string(i) + "},";
  }
  EXPECT_THAT(OnlySlice(DecodeDevices(devices)).devices, SizeIs(128));
  EXPECT_THAT(OnlyError(DecodeDevices(devices + "{name: more}")),
              HasSubstr("devices: has 129 entries, at most 128"));
  std::string attributes;
  for (int i = 0; i < 32; ++i) {
    attributes += "a" + std::to_string(i) + ": {int: 1},";
  }
  OnlySlice(DecodeDevices("{name: d, attributes: {" + attributes + "}}"));
  EXPECT_THAT(OnlyError(DecodeDevices("{name: d, attributes: {" + attributes +
                                      "}, capacity: {c: {value: 1}}}")),
              HasSubstr("has 33 attributes and capacities, at most 32"));
  EXPECT_THAT(OnlyError(DecodeDevices("{name: d, attributes: {a: {string: " +
                                      std::string(65, 'x') + "}}}")),
              HasSubstr("has 65 bytes, at most 64"));
}

TEST(DecodeNode, ReadsQuantitiesAndReportsBadOnes) {
  const auto decode = [](const std::string& status) {
    return DecodeManifest(
        "apiVersion: v1\nkind: Node\nmetadata: {name: node}\n" + status + "\n",
        "node.yaml");
  };
  EXPECT_THAT(decode("").objects, SizeIs(1));
  const DecodedManifest manifest = decode("status: {capacity: {a.com/x: 2}}");
  ASSERT_THAT(manifest.objects, SizeIs(1));
  EXPECT_EQ(
      std::get<Node>(manifest.objects[0].object).capacity.at("a.com/x").whole,
      2);
  EXPECT_THAT(OnlyError(decode("status: {allocatable: {cpu: few}}")),
              HasSubstr("node.yaml:4: status.allocatable[cpu]: 'few'"));
  EXPECT_THAT(decode("status: {}").warnings, IsEmpty());
}

}  // namespace
}  // namespace devmgr
