// SPDX-License-Identifier: Apache-2.0
#include <devmgr/manifests.h>
#include <devmgr/pod_texts.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace devmgr {
namespace {

using ::testing::HasSubstr;

TEST(PodTextsTest, EachPodComesWithAllThatItSays) {
  const auto pods = PodTextsOf(R"(apiVersion: v1
kind: Pod
metadata: {name: a, namespace: ns}
spec: {containers: [{name: c, command: [sh, "-c", "y"], tty: yes}]}
---
kind: ResourceClaim
apiVersion: resource.k8s.io/v1
metadata: {name: claim}
---
apiVersion: v1
kind: PodList
items:
- metadata: {name: b}
)",
                               "f.yaml");
  ASSERT_TRUE(pods.ok()) << pods.status();
  ASSERT_EQ(pods->size(), 2u);
  EXPECT_EQ((*pods)[0].name, (ObjectName{"ns", "a"}));
  EXPECT_EQ((*pods)[0].line, 1);
  EXPECT_EQ((*pods)[0].json,
            R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"a",)"
            R"("namespace":"ns"},"spec":{"containers":[{"command":["sh",)"
            R"("-c","y"],"name":"c","tty":true}]}})");
  EXPECT_EQ((*pods)[1].name, (ObjectName{"default", "b"}));
}

TEST(PodTextsTest, TheFirstOfTwoWithOneNameCounts) {
  const auto pods = PodTextsOf(
      R"({"apiVersion":"v1","kind":"List","items":[
        {"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"},"spec":1},
        {"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"},"spec":2},
        {"apiVersion":"v1","kind":"Pod","metadata":{}},
        {"apiVersion":"example.com/v1","kind":"Pod","metadata":{"name":"x"}}
      ]})",
      "f.json");
  ASSERT_TRUE(pods.ok()) << pods.status();
  ASSERT_EQ(pods->size(), 1u);
  EXPECT_THAT((*pods)[0].json, HasSubstr(R"("spec":1)"));
}

TEST(PodTextsTest, WhatIsWrittenDecodesToTheSamePod) {
  const std::string text = R"(
apiVersion: v1
kind: Pod
metadata: {name: a}
spec:
  containers:
  - {name: c, image: i, resources: {limits: {example.com/gpu: 2}}}
)";
  const auto pods = PodTextsOf(text, "f.yaml");
  ASSERT_TRUE(pods.ok() && pods->size() == 1);
  const auto decoded = DecodeManifest((*pods)[0].json, "f.json");
  ASSERT_TRUE(decoded.errors.empty()) << decoded.errors[0].ToString();
  const auto& pod = std::get<Pod>(decoded.objects.at(0).object);
  EXPECT_EQ(pod.spec.containers[0].resources.limits.at("example.com/gpu").whole,
            2);
}

TEST(PodTextsTest, AnErrorNamesFileAndLine) {
  const auto pods = PodTextsOf("a: b\n  c: [", "dir/f.yaml");
  EXPECT_EQ(pods.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(pods.status().message()), HasSubstr("dir/f.yaml:2"));
}

}  // namespace
}  // namespace devmgr
