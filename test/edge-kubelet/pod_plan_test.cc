// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "examples/edge-kubelet/pod.h"

namespace edge {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

/// A pod whose one container has these members besides its name.
std::string Pod(const std::string& container, const std::string& spec = "") {
  return R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"},"spec":{)" +
         spec + R"("hostNetwork":true,"containers":[{"name":"c","image":"i")" +
         container + "}]}}";
}

std::string Refusal(const std::string& text) {
  return std::string(ReadPod(text, "u", "/nowhere").status().message());
}

PodPlan Read(const std::string& text) {
  auto plan = ReadPod(text, "u", "/nowhere");
  EXPECT_TRUE(plan.ok()) << plan.status();
  return plan.value_or(PodPlan());
}

TEST(PodPlanTest, WhatHasNoEffectIsNamed) {
  EXPECT_EQ(
      Read(Pod(R"(,"livenessProbe":{},"resources":{"limits":{"cpu":"1"}},)"
               R"("securityContext":{"runAsUser":3})",
               R"("dnsPolicy":"Default",)"))
          .ignored,
      " spec.containers[c].livenessProbe"
      " spec.containers[c].resources.limits.cpu"
      " spec.containers[c].securityContext.runAsUser spec.dnsPolicy");
}

TEST(PodPlanTest, WhatThePodCannotDoWithoutIsRefusedAllAtOnce) {
  EXPECT_THAT(
      Refusal(Pod(R"x(,"env":[{"name":"A","valueFrom":{}}],"args":["$(A)"])x",
                  R"("volumes":[{"name":"v","configMap":{}}],)")),
      AllOf(HasSubstr("spec.volumes[v].configMap"),
            HasSubstr("env[A].valueFrom"), HasSubstr("args (references")));
}

TEST(PodPlanTest, MembersOfAnotherTypeAreErrors) {
  EXPECT_THAT(Refusal(Pod(R"(,"command":[7])")), HasSubstr("type"));
  EXPECT_THAT(Refusal(Pod(R"(,"command":{})")), HasSubstr("type"));
  EXPECT_THAT(Refusal(Pod("", R"("terminationGracePeriodSeconds":"x",)")),
              HasSubstr("type"));
  EXPECT_THAT(Refusal("{"), HasSubstr("parse error"));
}

TEST(PodPlanTest, SidecarsAreInitContainersThatAlwaysRestart) {
  const PodPlan plan =
      Read(Pod("", R"("restartPolicy":"Never","initContainers":[)"
                   R"({"name":"i","image":"i"},)"
                   R"({"name":"s","image":"i","restartPolicy":"Always"}],)"));
  EXPECT_EQ(plan.pod.spec.restart_policy, "Never");
  ASSERT_EQ(plan.pod.spec.init_containers.size(), 2u);
  EXPECT_EQ(plan.pod.spec.init_containers[0].restart_policy, "");
  EXPECT_EQ(plan.pod.spec.init_containers[1].restart_policy, "Always");
  EXPECT_EQ(plan.containers.size(), 3u);
  EXPECT_EQ(plan.ignored, "");
}

TEST(PodPlanTest, AContainerCarriesItsIdentity) {
  const PodPlan plan = Read(Pod(R"(,"command":["a","b"],"env":null)"));
  const cri::ContainerConfig& config = plan.containers.at("c");
  EXPECT_EQ(config.labels().at("io.kubernetes.pod.uid"), "u");
  EXPECT_EQ(config.labels().at("io.kubernetes.container.name"), "c");
  EXPECT_EQ(config.command_size(), 2);
  EXPECT_EQ(config.linux().security_context().namespace_options().network(),
            cri::NODE);
  EXPECT_EQ(plan.sandbox.metadata().namespace_(), "default");
}

TEST(PodPlanTest, VolumesLieOnTheHost) {
  const PodPlan plan = Read(
      Pod(R"(,"volumeMounts":[{"name":"h","mountPath":"/h","readOnly":true},)"
          R"({"name":"e","mountPath":"/e"}])",
          R"("volumes":[{"name":"h","hostPath":{"path":"/srv"}},)"
          R"({"name":"e","emptyDir":{}}],)"));
  const cri::ContainerConfig& config = plan.containers.at("c");
  ASSERT_EQ(config.mounts_size(), 2);
  EXPECT_EQ(config.mounts(0).host_path(), "/srv");
  EXPECT_TRUE(config.mounts(0).readonly());
  EXPECT_EQ(config.mounts(1).host_path(), "/nowhere/e");
  EXPECT_EQ(plan.empty_dirs, std::vector<std::string>{"e"});
}

}  // namespace
}  // namespace edge
