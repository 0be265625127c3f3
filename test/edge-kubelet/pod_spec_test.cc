// SPDX-License-Identifier: Apache-2.0
#include "examples/edge-kubelet/pod_spec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace edge {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

/// A pod whose one container has these members besides its name.
std::string Pod(const std::string& container, const std::string& spec = "") {
  return R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"},"spec":{)" +
         spec + R"("hostNetwork":true,"containers":[{"name":"c","image":"i")" +
         container + "}]}}";
}

std::string Refusal(const std::string& text) {
  return std::string(ReadPodSpec(text, {"u"}).status().message());
}

const PodPlaces kPlaces = {"/nowhere/volumes", "/nowhere/logs"};

cri::ContainerConfig ConfigOf(const std::string& text,
                              const devmgr::ContainerDevices& devices = {}) {
  const auto spec = ReadPodSpec(text, {"u"});
  EXPECT_TRUE(spec.ok()) << spec.status();
  Step step;
  step.container.name = "c";
  step.attempt = 2;
  step.back_off = milliseconds(20'000);
  auto config = ContainerConfigOf(*spec, step, kPlaces, devices);
  EXPECT_TRUE(config.ok()) << config.status();
  return config.value_or(cri::ContainerConfig());
}

TEST(PodSpecTest, WhatHasNoEffectIsNamed) {
  const auto spec = ReadPodSpec(
      Pod(R"(,"livenessProbe":{},"resources":{"limits":{"cpu":"1"}},)"
          R"("securityContext":{"privileged":true,"runAsUser":3})",
          R"("dnsPolicy":"Default",)"),
      {"u"});
  ASSERT_TRUE(spec.ok()) << spec.status();
  EXPECT_THAT(spec->ignored,
              ElementsAre("spec.dnsPolicy", "spec.containers 'c'.livenessProbe",
                          "spec.containers 'c'.securityContext.runAsUser",
                          "spec.containers 'c'.resources.limits.cpu"));
}

TEST(PodSpecTest, WhatThePodCannotDoWithoutIsRefusedAllAtOnce) {
  EXPECT_THAT(
      Refusal(Pod(R"x(,"env":[{"name":"A","valueFrom":{}}],"args":["$(A)"])x",
                  R"("volumes":[{"name":"v","configMap":{}}],)")),
      AllOf(HasSubstr("spec.volumes 'v' (only emptyDir and hostPath)"),
            HasSubstr("env 'A'.valueFrom"), HasSubstr("c'.args (references")));
}

TEST(PodSpecTest, MembersOfAnotherTypeAreErrors) {
  EXPECT_THAT(Refusal(Pod(R"(,"command":[7])")), HasSubstr("type"));
  EXPECT_THAT(Refusal(Pod("", R"("terminationGracePeriodSeconds":"x",)")),
              HasSubstr("type"));
  EXPECT_THAT(Refusal("{"), Not(HasSubstr("cannot do")));
}

TEST(PodSpecTest, SidecarsAreInitContainersThatAlwaysRestart) {
  const auto spec = ReadPodSpec(
      Pod("", R"("restartPolicy":"Never","initContainers":[)"
              R"({"name":"i","image":"i"},)"
              R"({"name":"s","image":"i","restartPolicy":"Always"}],)"),
      {"u"});
  ASSERT_TRUE(spec.ok()) << spec.status();
  EXPECT_EQ(spec->plan.restart_policy, "Never");
  ASSERT_EQ(spec->plan.containers.size(), 3u);
  using Kind = PlannedContainer::Kind;
  EXPECT_EQ(spec->plan.containers[0].kind, Kind::kInit);
  EXPECT_EQ(spec->plan.containers[1].kind, Kind::kSidecar);
  EXPECT_EQ(spec->plan.containers[2].kind, Kind::kApp);
  EXPECT_THAT(spec->ignored, ElementsAre());
}

// BO-106: the variable of the plugin comes first, so that the pod's counts.
TEST(PodSpecTest, VariablesOfThePodComeAfterThoseOfDevices) {
  devmgr::ContainerDevices devices;
  devices.env = {{"K", "plugin"}};
  const auto config =
      ConfigOf(Pod(R"(,"env":[{"name":"K","value":"pod"}])"), devices);
  ASSERT_EQ(config.envs_size(), 2);
  EXPECT_EQ(config.envs(0).value(), "plugin");
  EXPECT_EQ(config.envs(1).value(), "pod");
}

TEST(PodSpecTest, AContainerCarriesItsIdentityAndItsBackOff) {
  const auto config = ConfigOf(Pod(R"(,"command":["a","b"])"));
  EXPECT_EQ(config.metadata().attempt(), 2u);
  EXPECT_EQ(config.labels().at(kUidLabel), "u");
  EXPECT_EQ(config.labels().at("io.kubernetes.container.name"), "c");
  EXPECT_EQ(config.annotations().at(kBackOffAnnotation), "20000");
  EXPECT_EQ(config.log_path(), "c/2.log");
  EXPECT_EQ(config.linux().security_context().namespace_options().network(),
            cri::NODE);
}

TEST(PodSpecTest, EditsTakeThePlaceOfCdiNames) {
  devmgr::ContainerDevices devices;
  devices.cdi_devices = {{"v.com/c=1", {}}};
  devices.annotations = {{"cdi.k8s.io/x", "v.com/c=2"}, {"other", "x"}};
  devices.devices = {{"/dev/a", "/dev/plugin", "rw"}};
  auto config =
      ConfigOf(Pod(R"(,"env":[{"name":"K","value":"pod"}])"), devices);
  ASSERT_EQ(config.cdi_devices_size(), 1);
  devmgr::CriEdits edits;
  edits.env = {{"K", "cdi"}};
  edits.devices = {{"/dev/a", "/dev/null", "rwm"}};
  edits.mounts.push_back({"/in",
                          "/out",
                          true,
                          devmgr::CriMount::Propagation::kHostToContainer,
                          {"nosuid"}});
  edits.supplemental_groups = {44};
  ReplaceCdiNames(edits, &config);
  EXPECT_EQ(config.cdi_devices_size(), 0);
  EXPECT_EQ(config.annotations().count("cdi.k8s.io/x"), 0u);
  EXPECT_EQ(config.annotations().count("other"), 1u);
  ASSERT_EQ(config.envs_size(), 1);
  EXPECT_EQ(config.envs(0).value(), "cdi");
  ASSERT_EQ(config.devices_size(), 1);
  EXPECT_EQ(config.devices(0).host_path(), "/dev/null");
  ASSERT_EQ(config.mounts_size(), 1);
  EXPECT_TRUE(config.mounts(0).readonly());
  EXPECT_EQ(config.mounts(0).propagation(), cri::PROPAGATION_HOST_TO_CONTAINER);
  EXPECT_EQ(config.linux().security_context().supplemental_groups(0), 44);
}

TEST(PodSpecTest, VolumesLieOnTheHost) {
  const auto config = ConfigOf(
      Pod(R"(,"volumeMounts":[{"name":"h","mountPath":"/h","readOnly":true}])",
          R"("volumes":[{"name":"h","hostPath":{"path":"/srv"}}],)"));
  ASSERT_EQ(config.mounts_size(), 1);
  EXPECT_EQ(config.mounts(0).host_path(), "/srv");
  EXPECT_TRUE(config.mounts(0).readonly());
}

TEST(PodSpecTest, ASandboxCarriesTheManifest) {
  const std::string text = Pod("");
  const auto spec = ReadPodSpec(text, {"u"});
  ASSERT_TRUE(spec.ok());
  const auto config = SandboxConfigOf(*spec, 1, kPlaces, "/root");
  EXPECT_EQ(config.annotations().at(kManifestAnnotation), text);
  EXPECT_EQ(config.labels().at(kRootLabel), "/root");
  EXPECT_EQ(config.metadata().namespace_(), "default");
  EXPECT_EQ(config.metadata().attempt(), 1u);
}

}  // namespace
}  // namespace edge
