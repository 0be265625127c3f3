// SPDX-License-Identifier: Apache-2.0
#include "shim/injection.h"

#include <gmock/gmock.h>

#include <utility>

#include "support/status_matchers.h"

namespace devmgr::shim {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::StartsWith;

/// Character nodes wherever one looks, but for `/missing`.
CdiHost NodesEverywhere() {
  return {[](const std::string& path, bool) -> absl::StatusOr<HostPath> {
    if (path.starts_with("/missing")) {
      return absl::NotFoundError("there is no '" + path + "'");
    }
    HostPath node;
    node.type = HostPath::Type::kCharNode;
    node.major = 1;
    node.minor = 3;
    return node;
  }};
}

class PlanInjectionTest : public testing::Test {
 protected:
  PlanInjectionTest() {
    config_.name = "c";
    devices_.cdi_devices = {{"v.com/c=1", {}}, {"v.com/c=2", {}}};
  }

  absl::StatusOr<Injection> Plan(RuntimeCdi runtime) {
    InjectionTarget target{runtime, {}, *registry_, host_};
    target.fallback.pod = "ns/p";
    target.fallback.container = "c";
    target.fallback.runtime = "containerd 1.6.33";
    target.fallback.cdi_directories = {"/etc/cdi", "/run/cdi"};
    return PlanInjection(config_, &devices_, target);
  }
  void Specs(const std::string& one, const std::string& two) {
    registry_ =
        std::make_unique<CdiRegistry>(std::vector<CdiSpecFile>{MakeCdiSpecFile(
            "/etc/cdi/v.json", 0,
            R"({"cdiVersion": "0.7.0", "kind": "v.com/c", "devices": [)"
            R"({"name": "1", "containerEdits": )" +
                one + R"(}, {"name": "2", "containerEdits": )" + two + "}]}")});
  }

  cri::ContainerConfig config_;
  ContainerDevices devices_;
  std::unique_ptr<CdiRegistry> registry_ = std::make_unique<CdiRegistry>();
  CdiHost host_ = NodesEverywhere();
};

TEST_F(PlanInjectionTest, DoesNothingWhereThereIsNothing) {
  devices_ = {};
  config_.annotations["a"] = "b";
  config_.env = {{"K", "V"}};
  for (const RuntimeCdi runtime :
       {RuntimeCdi::kNone, RuntimeCdi::kAnnotations, RuntimeCdi::kField,
        RuntimeCdi::kFieldAndAnnotations}) {
    const auto injection = Plan(runtime);
    ASSERT_THAT(injection, IsOk());
    EXPECT_TRUE(injection->edits.empty()) << RuntimeCdiName(runtime);
  }
}

// BO-109: what is there already, in whichever way, is not asked for twice.
TEST_F(PlanInjectionTest, AsksForEachDeviceOnce) {
  config_.cdi_devices = {"v.com/c=2"};
  auto injection = Plan(RuntimeCdi::kFieldAndAnnotations);
  ASSERT_THAT(injection, IsOk());
  EXPECT_THAT(injection->edits.cdi_devices.last, ElementsAre("v.com/c=1"));
  config_.annotations["cdi.k8s.io/x"] = "v.com/c=1";
  injection = Plan(RuntimeCdi::kFieldAndAnnotations);
  ASSERT_THAT(injection, IsOk());
  EXPECT_TRUE(injection->edits.empty());
}

TEST_F(PlanInjectionTest, MovesNamesToWhereTheRuntimeReadsThem) {
  config_.cdi_devices = {"w.com/c=7"};
  auto injection = Plan(RuntimeCdi::kAnnotations);
  ASSERT_THAT(injection, IsOk());
  EXPECT_THAT(injection->edits.cdi_devices.drop, ElementsAre("w.com/c=7"));
  ASSERT_THAT(injection->edits.annotations.last, SizeIs(3));
  EXPECT_THAT(injection->edits.annotations.last[0].name,
              StartsWith("cdi.k8s.io/devmgr_"));
  EXPECT_EQ(injection->edits.annotations.last[1].name, kDevicesAnnotation);
  EXPECT_EQ(injection->edits.annotations.last[1].value,
            R"({"cdi":["v.com/c=1","v.com/c=2","w.com/c=7"]})");
  EXPECT_EQ(injection->edits.annotations.last[0].value,
            "w.com/c=7,v.com/c=1,v.com/c=2");

  config_.annotations["cdi.k8s.io/x"] = "x.com/c=3";
  injection = Plan(RuntimeCdi::kField);
  ASSERT_THAT(injection, IsOk());
  EXPECT_THAT(injection->edits.cdi_devices.last,
              ElementsAre("v.com/c=1", "v.com/c=2", "x.com/c=3"));
  EXPECT_TRUE(injection->edits.annotations.drop.contains("cdi.k8s.io/x"));
}

// BO-081, and the plugins' entries of the same name or path.
TEST_F(PlanInjectionTest, ExpandedEditsWin) {
  Specs(R"({"env": ["K=cdi"], "deviceNodes": [{"path": "/dev/x"}]})",
        R"({"env": ["L=cdi"]})");
  devices_.env = {{"K", "plugin", "r"}, {"M", "plugin", "r"}};
  devices_.devices = {{"/dev/x", "/dev/null", "rw", "r"},
                      {"/dev/z", "/dev/null", "rw", "r"}};
  config_.cdi_devices = {"v.com/c=1"};
  const auto injection = Plan(RuntimeCdi::kNone);
  ASSERT_THAT(injection, IsOk());
  const cri::ConfigEdits& edits = injection->edits;
  EXPECT_THAT(edits.env.first, ElementsAre(NamedValue{"M", "plugin", "r"}));
  EXPECT_TRUE(edits.env.drop.contains("K"));
  EXPECT_THAT(edits.env.last, SizeIs(2));
  EXPECT_THAT(edits.devices.first, SizeIs(1));
  EXPECT_THAT(edits.devices.last, SizeIs(1));
  EXPECT_THAT(edits.cdi_devices.drop, ElementsAre("v.com/c=1"));
  EXPECT_THAT(edits.cdi_devices.last, IsEmpty());
}

// BO-086: the request has groups already.
TEST_F(PlanInjectionTest, AddsGroupsThatAreNotThere) {
  Specs(R"({"additionalGids": [44, 27]})", R"({"additionalGids": [50, 27]})");
  config_.supplemental_groups = {44, 50};
  const auto injection = Plan(RuntimeCdi::kNone);
  ASSERT_THAT(injection, IsOk());
  EXPECT_THAT(injection->edits.supplemental_groups, ElementsAre(27u));
}

// A plugin that still gives names by annotation.
TEST_F(PlanInjectionTest, ExpandsAnnotationsOfPlugins) {
  Specs(R"({"env": ["K=cdi"]})", R"({"env": ["L=cdi"]})");
  devices_.cdi_devices.clear();
  devices_.annotations = {{"cdi.k8s.io/r_x", "v.com/c=2", "r"},
                          {"other", "1", "r"}};
  const auto injection = Plan(RuntimeCdi::kNone);
  ASSERT_THAT(injection, IsOk());
  EXPECT_THAT(injection->edits.env.last, SizeIs(1));
  EXPECT_THAT(injection->edits.annotations.first,
              ElementsAre(NamedValue{"other", "1", "r"}));
}

// BO-083.
TEST_F(PlanInjectionTest, RefusesWithAllObstacles) {
  registry_ = std::make_unique<CdiRegistry>(std::vector<CdiSpecFile>{
      MakeCdiSpecFile("/etc/cdi/v.json", 0,
                      R"({"cdiVersion": "1.1.0", "kind": "v.com/c", "devices": [
              {"name": "1", "containerEdits": {"netDevices": [
                {"hostInterfaceName": "eth7", "name": "eth0"}]}},
              {"name": "2", "containerEdits": {"mounts": [
                {"hostPath": "tmpfs", "containerPath": "/t",
                 "type": "tmpfs"}]}}]})")});
  EXPECT_THAT(Plan(RuntimeCdi::kNone),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       AllOf(HasSubstr("'c'"), HasSubstr("v.com/c=1"),
                             HasSubstr("v.com/c=2"), HasSubstr("tmpfs"),
                             HasSubstr("containerd 1.6.33"))));
}

TEST_F(PlanInjectionTest, RefusesNamesThatNoFileDefines) {
  EXPECT_THAT(Plan(RuntimeCdi::kNone),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       AllOf(HasSubstr("container 'c' of pod 'ns/p'"),
                             HasSubstr("v.com/c=1, v.com/c=2"),
                             HasSubstr("searched in '/etc/cdi', '/run/cdi'"))));
}

// BO-073, BO-074: names that cannot be read are not dropped silently.
TEST_F(PlanInjectionTest, RefusesAnnotationsThatItWouldHaveToExpand) {
  config_.annotations["cdi.k8s.io/x"] = "v.com/c=1, v.com/c=2";
  EXPECT_THAT(Plan(RuntimeCdi::kNone),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("cdi.k8s.io/x")));
  // A runtime with CDI says so itself.
  EXPECT_THAT(Plan(RuntimeCdi::kFieldAndAnnotations), IsOk());
}

TEST_F(PlanInjectionTest, WarnsOfPermissionsThatRuntimesRefuse) {
  devices_.devices = {{"/dev/x", "/dev/null", "", "r"},
                      {"/dev/y", "/dev/null", "rwx", "r"},
                      {"/dev/z", "/dev/null", "rwm", "r"}};
  const auto injection = Plan(RuntimeCdi::kField);
  ASSERT_THAT(injection, IsOk());
  EXPECT_THAT(injection->warnings,
              ElementsAre(HasSubstr("/dev/x"), HasSubstr("/dev/y")));
  EXPECT_THAT(injection->edits.devices.first, SizeIs(3));
}

TEST_F(PlanInjectionTest, StampsWhatAContainerWasGiven) {
  const auto stamp = [this] {
    const auto injection = Plan(RuntimeCdi::kField);
    return injection.ok() ? injection->edits.annotations.last.back()
                          : NamedValue();
  };
  const NamedValue first = stamp();
  EXPECT_EQ(first.name, kAllocationAnnotation);
  EXPECT_EQ(stamp(), first);
  // What the client names comes behind that; what is ours is not the client's.
  config_.cdi_devices = {"v.com/client=1"};
  EXPECT_THAT(stamp().value, StartsWith(first.value + "."));
  config_.cdi_devices.clear();
  devices_.resources = {{"r", {"id-1"}}};
  EXPECT_NE(stamp().value, first.value);
}

}  // namespace
}  // namespace devmgr::shim
