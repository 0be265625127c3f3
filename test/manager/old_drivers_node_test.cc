// SPDX-License-Identifier: Apache-2.0
//
// A whole node over real sockets, once for each API that drivers have spoken:
// prepared, resolved, and after a restart without any object unprepared.
#include <devmgr/allocate.h>
#include <devmgr/device_manager.h>
#include <devmgr/manifests.h>
#include <devmgr/testing.h>
#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "support/mailbox.h"
#include "support/temp_folder.h"
#include "support/test_node.h"

namespace devmgr {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr std::chrono::milliseconds kLimit{30'000};
constexpr char kDriverName[] = "gpu.example.com";
const PodUid kPod{"pod-1"};

/// Two containers that use one claim, one of them by a request.
constexpr char kPodText[] = R"(apiVersion: v1
kind: Pod
metadata: {name: p, namespace: default, uid: pod-1}
spec:
  containers:
  - {name: a, resources: {claims: [{name: gpu}]}}
  - {name: b, resources: {claims: [{name: gpu, request: r}]}}
  resourceClaims:
  - {name: gpu, resourceClaimName: c}
)";

/// Claim `c` as a control plane of that time wrote it, but for its end.
std::string ClaimText(const std::string& version, const std::string& status) {
  return fmt::format(
      "---\napiVersion: resource.k8s.io/{}\nkind: ResourceClaim\n"
      "metadata: {{name: c, namespace: default, uid: uid-c}}\n"
      "status:\n"
      "  reservedFor: [{{resource: pods, name: p, uid: pod-1}}]\n{}",
      version, status);
}

std::string ByResults(const std::string& version) {
  return ClaimText(version,
                   "  allocation: {devices: {results: [{request: r, driver: "
                   "gpu.example.com, pool: pool-0, device: gpu-3}]}}\n");
}

std::string ByHandle() {
  return ClaimText("v1alpha2",
                   "  driverName: gpu.example.com\n"
                   "  allocation: {resourceHandles: [{data: handle-c}]}\n");
}

struct Generation {
  std::string api;      ///< Of the driver.
  std::string claim;    ///< What Kubernetes had at its time.
  std::string version;  ///< As shown once it is known.
  bool by_handle;
};

class OldDriversNodeTest : public ::testing::Test {
 protected:
  void StartDriver(const std::vector<std::string>& api) {
    testing::FakeDraDriverOptions options;
    options.name = kDriverName;
    options.root = folder_.path();
    options.api = api;
    auto driver = testing::FakeDraDriver::Start(std::move(options));
    ASSERT_TRUE(driver.ok()) << driver.status();
    driver_ = *std::move(driver);
  }

  void StartManager(bool compat = true) {
    manager_.reset();
    const std::size_t before = registrations_;
    DeviceManagerOptions options;
    options.state_dir = folder_.path() / "state";
    options.plugin_registry_dir = folder_.path() / "plugins_registry";
    options.plugin_dirs = {folder_.path()};
    options.dra.compat = compat;
    Host host;
    host.objects = source_.get();
    host.log = [this](LogLevel level, std::string_view text) {
      if (level == LogLevel::kDebug) debug_lines_.Put(std::string(text));
    };
    auto manager = DeviceManager::Open(options, host);
    ASSERT_TRUE(manager.ok()) << manager.status();
    manager_ = *std::move(manager);
    registrations_ = before + 1;
    ASSERT_TRUE(driver_->WaitForRegistrations(registrations_, kLimit));
  }

  /// The driver reads claims where it can, from a file.
  void Publish(const std::string& claim) {
    const std::filesystem::path directory = folder_.path() / "manifests";
    std::filesystem::create_directories(directory);
    std::ofstream(directory / "claim.yaml") << claim;
    source_->Publish(SnapshotOf(kPodText + claim));
  }
  void PublishNothing() {
    std::filesystem::remove_all(folder_.path() / "manifests");
    source_->Publish(SnapshotOf(""));
  }

  absl::StatusOr<Verdict> Admit() {
    return manager_->AdmitPod(*SnapshotOf(kPodText).pods.at({"default", "p"}));
  }

  std::vector<std::string> Resolve(const std::string& container) {
    const auto devices = manager_->ContainerDevicesOf(kPod, container);
    EXPECT_TRUE(devices.ok()) << devices.status();
    std::vector<std::string> ids;
    if (!devices.ok()) return ids;
    for (const CdiDevice& device : (*devices)->cdi_devices) {
      ids.push_back(device.name);
    }
    return ids;
  }

  const TempFolder folder_;
  const std::unique_ptr<MemoryObjectSource> source_ =
      MemoryObjectSource::Create();
  Mailbox<std::string> debug_lines_;
  std::unique_ptr<testing::FakeDraDriver> driver_;
  std::unique_ptr<DeviceManager> manager_;
  std::size_t registrations_ = 0;
};

class EveryApiTest : public OldDriversNodeTest,
                     public ::testing::WithParamInterface<Generation> {};

// DRA-001, DRA-002, DRA-022, DRA-023
TEST_P(EveryApiTest, IsServedFromPrepareToUnprepare) {
  const Generation& generation = GetParam();
  StartDriver({generation.api});
  Publish(generation.claim);
  StartManager();
  const auto verdict = Admit();
  ASSERT_TRUE(verdict.ok()) << verdict.status();
  ASSERT_EQ(verdict->kind, Verdict::Kind::kAdmit) << verdict->message;
  ASSERT_EQ(manager_->PreparePod(kPod), absl::OkStatus());
  const auto prepared = driver_->Calls().back();
  EXPECT_EQ(prepared.api, generation.api);
  EXPECT_THAT(prepared.claims, ElementsAre("c"));
  EXPECT_THAT(prepared.claim_uids, ElementsAre("uid-c"));
  const std::vector<std::string> ids = Resolve("a");
  EXPECT_THAT(ids, ElementsAre(HasSubstr("gpu.example.com/claim=uid-c-")));
  EXPECT_EQ(Resolve("b"), ids);
  EXPECT_EQ(manager_->View()->Plugins().at(0).version, generation.version);

  // From the ledger alone, by a manager that has yet to find out.
  PublishNothing();
  StartManager();
  EXPECT_EQ(Resolve("a"), ids);
  ASSERT_EQ(manager_->UnpreparePod(kPod), absl::OkStatus());
  EXPECT_THAT(driver_->PreparedClaims(), IsEmpty());
  const auto unprepared = driver_->Calls().back();
  EXPECT_EQ(unprepared.method, "unprepare");
  EXPECT_EQ(unprepared.api, generation.api);
  if (generation.by_handle) {
    ASSERT_THAT(prepared.handles, SizeIs(1));
    EXPECT_EQ(prepared.handles[0].data, "handle-c");
    ASSERT_THAT(unprepared.handles, SizeIs(1));
    // The oldest API has the CDI names in place of the handle.
    const bool by_names = generation.api == "v1alpha1";
    EXPECT_EQ(unprepared.handles[0].data, by_names ? "" : "handle-c");
    EXPECT_EQ(unprepared.cdi_devices,
              by_names ? ids : std::vector<std::string>());
  }
}

INSTANTIATE_TEST_SUITE_P(
    AllApis, EveryApiTest,
    ::testing::Values(
        Generation{"v1", ByResults("v1"), "v1.DRAPlugin", false},
        Generation{"v1beta1", ByResults("v1beta1"), "v1beta1.DRAPlugin", false},
        Generation{"v1alpha4", ByResults("v1alpha3"), "v1alpha4", false},
        Generation{"v1alpha3", ByHandle(), "v1alpha3", true},
        Generation{"v1alpha2", ByHandle(), "v1alpha2", true},
        Generation{"v1alpha1",
                   ClaimText("v1alpha1",
                             "  driverName: gpu.example.com\n"
                             "  allocation: {resourceHandle: handle-c}\n"),
                   "v1alpha1", true}),
    [](const auto& generation) { return generation.param.api; });

class StructuredHandleTest : public OldDriversNodeTest,
                             public ::testing::WithParamInterface<const char*> {
};

// Structured allocation of Kubernetes 1.30.
TEST_P(StructuredHandleTest, IsWhatAStructuredAllocationGives) {
  StartDriver({GetParam()});
  Publish(ClaimText("v1alpha2",
                    "  allocation:\n"
                    "    resourceHandles:\n"
                    "    - driverName: gpu.example.com\n"
                    "      structuredData:\n"
                    "        vendorClassParameters: {share: true}\n"
                    "        nodeName: node-1\n"
                    "        results:\n"
                    "        - {namedResources: {name: gpu-3}}\n"
                    "        - {namedResources: {name: gpu-4}}\n"));
  StartManager();
  ASSERT_TRUE(Admit().ok());
  ASSERT_EQ(manager_->PreparePod(kPod), absl::OkStatus());
  EXPECT_THAT(Resolve("b"),
              ElementsAre(HasSubstr("gpu-3"), HasSubstr("gpu-4")));
  PublishNothing();
  StartManager();
  ASSERT_EQ(manager_->UnpreparePod(kPod), absl::OkStatus());
  for (const std::size_t call : {std::size_t{0}, driver_->Calls().size() - 1}) {
    const auto handles = driver_->Calls()[call].handles;
    ASSERT_THAT(handles, SizeIs(1));
    ASSERT_TRUE(handles[0].structured.has_value());
    EXPECT_EQ(handles[0].structured->vendor_class_parameters,
              R"({"share":true})");
    EXPECT_EQ(handles[0].structured->node_name, "node-1");
    EXPECT_THAT(handles[0].structured->results, SizeIs(2));
  }
}

template <typename T>
void TakeIf(const Object& object, std::vector<T>& objects) {
  if (const T* one = std::get_if<T>(&object)) objects.push_back(*one);
}

/// The claim as it is allocated and written with parameters that say `tuning`.
std::string ByParameters(const std::string& tuning) {
  static constexpr char kObjects[] = R"(apiVersion: resource.k8s.io/v1alpha2
kind: ResourceClass
metadata: {{name: s}}
driverName: gpu.example.com
structuredParameters: true
parametersRef:
  {{apiGroup: resource.k8s.io, kind: ResourceClassParameters, name: q,
    namespace: default}}
---
apiVersion: resource.k8s.io/v1alpha2
kind: ResourceClassParameters
metadata: {{name: q}}
vendorParameters: [{{driverName: gpu.example.com, parameters: {{of: class}}}}]
---
apiVersion: resource.k8s.io/v1alpha2
kind: ResourceClaimParameters
metadata: {{name: p}}
driverRequests:
- driverName: gpu.example.com
  vendorParameters: {{tuning: {tuning}}}
  requests:
  - vendorParameters: {{of: request}}
    namedResources: {{selector: 'true'}}
---
apiVersion: resource.k8s.io/v1alpha2
kind: ResourceSlice
metadata: {{name: slice}}
nodeName: node-1
driverName: gpu.example.com
namedResources: {{instances: [{{name: gpu-3}}]}}
---
apiVersion: resource.k8s.io/v1alpha2
kind: ResourceClaim
metadata: {{name: c, namespace: default, uid: uid-c}}
spec:
  resourceClassName: s
  parametersRef:
    {{apiGroup: resource.k8s.io, kind: ResourceClaimParameters, name: p}}
status:
  reservedFor: [{{resource: pods, name: p, uid: pod-1}}]
)";
  DecodedManifest manifest = DecodeManifest(
      fmt::format(kObjects, fmt::arg("tuning", tuning)), "all.yaml", "node-1");
  EXPECT_THAT(manifest.errors, IsEmpty());
  AllocationInput input;
  input.node.metadata.name = "node-1";
  for (DecodedObject& each : manifest.objects) {
    TakeIf(each.object, input.claims);
    TakeIf(each.object, input.slices);
    TakeIf(each.object, input.resource_classes);
    TakeIf(each.object, input.resource_class_parameters);
    TakeIf(each.object, input.resource_claim_parameters);
  }
  const AllocatedClaims allocated = AllocateClaims(input);
  EXPECT_EQ(allocated.claims.size(), 1u) << allocated.message;
  if (allocated.claims.empty()) return "";
  return "---\n" + EncodeResourceClaim(allocated.claims[0]) + "\n";
}

// AL-125: the bytes are fixed when the pod takes the claim.
TEST_P(StructuredHandleTest, IsTheSameWhateverBecomesOfTheParameters) {
  StartDriver({GetParam()});
  Publish(ByParameters("low"));
  StartManager();
  ASSERT_TRUE(Admit().ok());
  ASSERT_EQ(manager_->PreparePod(kPod), absl::OkStatus());
  const auto prepared = driver_->Calls().back().handles;
  ASSERT_THAT(prepared, SizeIs(1));
  EXPECT_EQ(prepared[0].data, "");
  ASSERT_TRUE(prepared[0].structured.has_value());
  EXPECT_EQ(*prepared[0].structured,
            (StructuredResourceHandle{R"({"of":"class"})",
                                      R"({"tuning":"low"})",
                                      "node-1",
                                      {{R"({"of":"request"})", "gpu-3"}}}));
  // As a controller writes it that allocates the claim anew, and then without
  // any object.
  Publish(ByParameters("high"));
  StartManager();
  ASSERT_TRUE(Admit().ok());
  ASSERT_EQ(manager_->PreparePod(kPod), absl::OkStatus());
  PublishNothing();
  StartManager();
  ASSERT_EQ(manager_->UnpreparePod(kPod), absl::OkStatus());
  EXPECT_EQ(driver_->Calls().back().method, "unprepare");
  EXPECT_EQ(driver_->Calls().back().handles, prepared);
}

INSTANTIATE_TEST_SUITE_P(OldApis, StructuredHandleTest,
                         ::testing::Values("v1alpha3", "v1alpha2"),
                         [](const auto& api) {
                           return std::string(api.param);
                         });

TEST_F(OldDriversNodeTest, TheDebugLogShowsCallsToDriversWithTheirDuration) {
  StartDriver({"v1"});
  Publish(ByResults("v1"));
  StartManager();
  ASSERT_TRUE(Admit().ok());
  ASSERT_EQ(manager_->PreparePod(kPod), absl::OkStatus());
  std::optional<std::string> line = debug_lines_.Take();
  while (line && line->find("NodePrepareResources") == std::string::npos) {
    line = debug_lines_.Take();
  }
  EXPECT_THAT(line.value_or("none"),
              ::testing::MatchesRegex(
                  "call .*NodePrepareResources of DRA driver gpu.example.com "
                  "ended after [0-9]+[.][0-9]+ ms: OK"));
}

// DRA-004, DRA-022 with compatibility off
TEST_F(OldDriversNodeTest, WithoutCompatAnOldDriverIsRefused) {
  StartDriver({"v1alpha4", "v1alpha2"});
  StartManager(/*compat=*/false);
  EXPECT_THAT(driver_->last_registration_error(),
              HasSubstr("none of services supported by the plugin "
                        "([v1alpha3.NodeService 1.0.0])"));
  EXPECT_THAT(manager_->View()->Plugins(), IsEmpty());
}

TEST_F(OldDriversNodeTest, ADriverWithNewAndOldServicesIsCalledByTheNewest) {
  StartDriver({"v1alpha2", "v1alpha4", "v1"});
  Publish(ByResults("v1"));
  StartManager();
  ASSERT_TRUE(Admit().ok());
  ASSERT_EQ(manager_->PreparePod(kPod), absl::OkStatus());
  EXPECT_EQ(driver_->Calls().back().api, "v1");
}

TEST_F(OldDriversNodeTest, AnOldVersionForADriverNeedsCompat) {
  DeviceManagerOptions options;
  options.ledger.in_memory = true;
  options.dra.apis = {{"a.example.com", "v1alpha2"}};
  const absl::Status refused = DeviceManager::Open(options).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(refused.message()),
              HasSubstr("dra.apis of 'a.example.com': v1alpha2 needs "
                        "dra.compat"));
}

}  // namespace
}  // namespace devmgr
