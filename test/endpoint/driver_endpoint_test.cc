// SPDX-License-Identifier: Apache-2.0
//
// The endpoint as a program has it: a source of what drivers publish, and what
// it shows them of claims.
#include <devmgr/driver_endpoint.h>
#include <devmgr/manifests.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <variant>

#include "checkpoint/database_objects.h"
#include "endpoint/bed.h"
#include "endpoint/kept_files.h"
#include "support/mailbox.h"

namespace devmgr {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

using Bed = endpoint::EndpointBed;

/// A source that delays its next Snapshot.
class SlowSource final : public ObjectSource {
 public:
  void Publish(std::shared_ptr<const ObjectSnapshot> snapshot) {
    std::function<void()> changed;
    {
      const std::lock_guard lock(mutex_);
      snapshot_ = std::move(snapshot);
      changed = changed_;
    }
    if (changed) changed();
  }
  /// Called once, between the look at the objects and the return.
  void InNextSnapshot(std::function<void()> what) {
    const std::lock_guard lock(mutex_);
    in_snapshot_ = std::move(what);
  }

  std::shared_ptr<const ObjectSnapshot> Snapshot() const override {
    std::shared_ptr<const ObjectSnapshot> snapshot;
    std::function<void()> what;
    {
      const std::lock_guard lock(mutex_);
      snapshot = snapshot_;
      what.swap(in_snapshot_);
    }
    if (what) what();
    return snapshot;
  }
  void Subscribe(std::function<void()> changed) override {
    const std::lock_guard lock(mutex_);
    changed_ = std::move(changed);
  }
  void Unsubscribe() override { Subscribe(nullptr); }
  std::string Describe() const override { return "slow"; }

 private:
  mutable std::mutex mutex_;
  std::shared_ptr<const ObjectSnapshot> snapshot_ =
      std::make_shared<const ObjectSnapshot>();
  mutable std::function<void()> in_snapshot_;
  std::function<void()> changed_;
};

class DriverEndpointTest : public ::testing::Test {
 protected:
  DriverEndpointTest() {
    options_.node_name = "n1";
    options_.state_dir = folder_.path() / "state";
    options_.kubeconfig_dir = folder_.path() / "kubeconfig";
    options_.drivers = {endpoint::kDriver};
    options_.log = [this](LogLevel, std::string_view line) {
      log_.Put(std::string(line));
    };
    ObjectSnapshot objects;
    objects.complete = true;
    files_->Publish(std::move(objects));
  }

  void Start() {
    auto made = DriverEndpoint::Create(options_, *files_);
    ASSERT_TRUE(made.ok()) << made.status();
    endpoint_ = *std::move(made);
    const absl::Status served = endpoint_->Serve(kept_);
    ASSERT_TRUE(served.ok()) << served;
    endpoint_->source().Subscribe([this] { changes_.Put(0); });
  }
  void Stop() {
    endpoint_->source().Unsubscribe();
    endpoint_.reset();
  }
  endpoint::Reply Call(const std::string& method, const std::string& target,
                       const std::string& body = "",
                       const std::string& type = "application/json") const {
    const std::string server = endpoint_->server();
    const int port = std::stoi(server.substr(server.rfind(':') + 1));
    endpoint::TlsClient client(static_cast<std::uint16_t>(port),
                               options_.kubeconfig_dir / ".tls/ca.crt");
    return client.Call(
        method, target,
        endpoint::TextOf(options_.kubeconfig_dir / ".serviceaccount" /
                         endpoint::kDriver / "token"),
        body, type);
  }
  ObjectMap<ResourceSlice> Slices() const {
    return endpoint_->source().Snapshot()->resource_slices;
  }

  const TempFolder folder_;
  /// Outlives the endpoint, as what is on a disk does.
  const std::shared_ptr<ObjectSpace> kept_ = checkpoint::NewInMemoryObjects();
  DriverEndpointOptions options_;
  const std::unique_ptr<MemoryObjectSource> files_ =
      MemoryObjectSource::Create();
  Mailbox<std::string> log_;
  Mailbox<int> changes_;
  std::unique_ptr<DriverEndpoint> endpoint_;
};

TEST_F(DriverEndpointTest, WhatADriverPublishesIsAnObjectOfTheSource) {
  Start();
  EXPECT_THAT(Slices(), IsEmpty());
  EXPECT_TRUE(endpoint_->source().Snapshot()->complete);
  EXPECT_EQ(Call("POST", endpoint::kSlices, Bed::Slice("s").dump()).code, 201);
  changes_.Take();
  const auto slices = Slices();
  ASSERT_THAT(slices, SizeIs(1));
  EXPECT_EQ(slices.begin()->second->driver, endpoint::kDriver);
  EXPECT_THAT(slices.begin()->second->devices, SizeIs(1));

  Stop();
  Start();
  EXPECT_THAT(Slices(), SizeIs(1));
  EXPECT_EQ(Call("DELETE", std::string(endpoint::kSlices) + "/s").code, 200);
  changes_.Take();
  EXPECT_THAT(Slices(), IsEmpty());
  Stop();
}

/// The official helper reads it before it publishes anything.
TEST_F(DriverEndpointTest, ADriverFindsItsNode) {
  Start();
  const auto node = Call("GET", "/api/v1/nodes/n1");
  EXPECT_EQ(node.code, 200);
  const auto uid = node.json()["metadata"]["uid"].get<std::string>();
  EXPECT_THAT(uid, SizeIs(36));
  Stop();
  Start();
  EXPECT_EQ(Call("GET", "/api/v1/nodes/n1").json()["metadata"]["uid"], uid);
  Stop();
}

TEST_F(DriverEndpointTest, ObjectsOfFilesStayBesideThem) {
  Start();
  EXPECT_EQ(Call("POST", endpoint::kSlices, Bed::Slice("s").dump()).code, 201);
  changes_.Take();
  ObjectSnapshot objects;
  auto pod = std::make_shared<Pod>();
  pod->metadata.name = "p";
  objects.pods.insert_or_assign(ObjectName{"default", "p"}, pod);
  files_->Publish(std::move(objects));
  changes_.Take();
  const auto joined = endpoint_->source().Snapshot();
  EXPECT_THAT(joined->pods, SizeIs(1));
  EXPECT_THAT(joined->resource_slices, SizeIs(1));
  EXPECT_FALSE(joined->complete);
  Stop();
}

/// An object that is known is not gone because two threads look at once.
TEST_F(DriverEndpointTest, AnOlderLookAtTheObjectsDoesNotReplaceANewerOne) {
  SlowSource slow;
  auto made = DriverEndpoint::Create(options_, slow);
  ASSERT_TRUE(made.ok()) << made.status();
  endpoint_ = *std::move(made);
  ASSERT_TRUE(endpoint_->Serve(kept_).ok());
  endpoint_->source().Subscribe([this] { changes_.Put(0); });
  auto newer = std::make_shared<ObjectSnapshot>();
  newer->pods.insert_or_assign(ObjectName{"default", "p"},
                               std::make_shared<const Pod>());
  std::thread other;
  Mailbox<int> over;
  slow.InNextSnapshot([&] {
    other = std::thread([&] {
      slow.Publish(newer);
      over.Put(0);
    });
    // It waits for this call. Should it not, it overtakes it within this time.
    over.Take(std::chrono::milliseconds(200));
  });
  slow.Publish(std::make_shared<const ObjectSnapshot>());
  other.join();
  EXPECT_THAT(endpoint_->source().Snapshot()->pods, SizeIs(1));
  Stop();
}

/// A driver that is called reads the claim: it has to be there by then.
TEST_F(DriverEndpointTest, AClaimIsShownBeforeItIsPrepared) {
  Start();
  DecodedManifest decoded =
      DecodeManifest(Bed::Claim("c"), "test", options_.node_name);
  ASSERT_THAT(decoded.objects, SizeIs(1));
  auto objects = std::make_shared<ObjectSnapshot>();
  objects->complete = true;
  objects->claims.insert_or_assign(
      ObjectName{"default", "c"},
      std::make_shared<const ResourceClaim>(
          std::get<ResourceClaim>(decoded.objects[0].object)));
  EXPECT_EQ(Call("GET", endpoint::kClaim).code, 404);
  Mailbox<absl::Status> shown;
  endpoint_->ShowObjectsOf([objects] { return objects; });
  EXPECT_TRUE(endpoint_->source().Refresh(
      ObjectKind::kResourceClaim, {"default", "c"},
      [&](const absl::Status& status) { shown.Put(status); }));
  EXPECT_TRUE(shown.Take().value().ok());
  const auto reply = Call("GET", endpoint::kClaim);
  EXPECT_EQ(reply.code, 200);
  EXPECT_EQ(reply.json()["metadata"]["uid"], "u-c");

  // What is not known completely takes nothing away, also over a restart.
  const auto show = [&](bool complete) {
    auto none = std::make_shared<ObjectSnapshot>();
    none->complete = complete;
    endpoint_->ShowObjectsOf([none] { return none; });
    EXPECT_TRUE(endpoint_->source().Refresh(
        ObjectKind::kResourceClaim, {"default", "c"},
        [&](const absl::Status& status) { shown.Put(status); }));
    EXPECT_TRUE(shown.Take().value().ok());
    return Call("GET", endpoint::kClaim).code;
  };
  EXPECT_EQ(show(false), 200);
  Stop();
  Start();
  EXPECT_EQ(show(false), 200);
  EXPECT_EQ(show(true), 404);
  Stop();
}

TEST_F(DriverEndpointTest, AClaimThatIsRefusedIsInNoOthersWay) {
  Start();
  DecodedManifest decoded =
      DecodeManifest(Bed::Claim("c"), "test", options_.node_name);
  ASSERT_THAT(decoded.objects, SizeIs(1));
  auto claim = std::get<ResourceClaim>(decoded.objects[0].object);
  auto objects = std::make_shared<ObjectSnapshot>();
  objects->complete = true;
  for (const char* name : {"Bad Name", "c"}) {
    claim.metadata.name = name;
    objects->claims.insert_or_assign(
        ObjectName{"default", name},
        std::make_shared<const ResourceClaim>(claim));
  }
  Mailbox<absl::Status> shown;
  const auto refresh = [&](const std::string& name) {
    EXPECT_TRUE(endpoint_->source().Refresh(
        ObjectKind::kResourceClaim, {"default", name},
        [&](const absl::Status& status) { shown.Put(status); }));
    return shown.Take().value_or(absl::UnknownError("no answer"));
  };
  endpoint_->ShowObjectsOf([objects] { return objects; });
  EXPECT_THAT(log_.Take().value_or(""), HasSubstr("Bad Name"));
  EXPECT_THAT(std::string(refresh("Bad Name").message()),
              HasSubstr("Bad Name"));
  EXPECT_TRUE(refresh("c").ok());
  EXPECT_EQ(Call("GET", endpoint::kClaim).code, 200);
  // Nor in the way of those that go.
  auto fewer = std::make_shared<ObjectSnapshot>(*objects);
  fewer->claims.erase(ObjectName{"default", "c"});
  endpoint_->ShowObjectsOf([fewer] { return fewer; });
  EXPECT_TRUE(refresh("c").ok());
  EXPECT_EQ(Call("GET", endpoint::kClaim).code, 404);
  Stop();
}

/// Without a Refresh: a driver may read a claim before any pod needs it.
TEST_F(DriverEndpointTest, ClaimsAreShownWhenTheyAreKnownAndWhenTheyChange) {
  Start();
  const auto objects_with = [&](const std::string& uid) {
    std::string text = Bed::Claim("c");
    text.replace(text.find("u-c"), 3, uid);
    DecodedManifest decoded = DecodeManifest(text, "test", options_.node_name);
    auto objects = std::make_shared<ObjectSnapshot>();
    objects->complete = true;
    objects->claims.insert_or_assign(
        ObjectName{"default", "c"},
        std::make_shared<const ResourceClaim>(
            std::get<ResourceClaim>(decoded.objects.at(0).object)));
    return objects;
  };
  const auto shown_uid = [&] {
    const auto reply = Call("GET", endpoint::kClaim);
    return reply.code == 200 ? reply.json()["metadata"]["uid"].dump() : "none";
  };
  std::mutex mutex;
  auto objects = objects_with("u-c");
  const auto read = [&]() -> std::shared_ptr<const ObjectSnapshot> {
    const std::lock_guard lock(mutex);
    return objects;
  };
  endpoint_->ShowObjectsOf(read);
  // Waits for what the endpoint's thread had to do before.
  endpoint_->ShowObjectsOf(nullptr);
  EXPECT_EQ(shown_uid(), "\"u-c\"");
  endpoint_->ShowObjectsOf(read);
  {
    const std::lock_guard lock(mutex);
    objects = objects_with("u-d");
  }
  DeviceManagerObserver& observer = *endpoint_;
  observer.OnObjects();
  endpoint_->ShowObjectsOf(nullptr);
  EXPECT_EQ(shown_uid(), "\"u-d\"");
  Stop();
}

// API-063, API-064
TEST_F(DriverEndpointTest, WhatADriverSaysOfDevicesIsInTheSource) {
  Start();
  const std::string status = std::string(endpoint::kClaim) + "/status";
  const std::string entries = R"([{"driver": "gpu.example.com", "pool": "n1",
      "device": "gpu-0", "data": {"speed": 3},
      "networkData": {"ips": ["192.0.2.5/24"]}}])";
  DecodedManifest decoded =
      DecodeManifest(Bed::Claim("c"), "test", options_.node_name);
  auto objects = std::make_shared<ObjectSnapshot>();
  objects->complete = true;
  auto claim = std::make_shared<ResourceClaim>(
      std::get<ResourceClaim>(decoded.objects[0].object));
  objects->claims.insert_or_assign(ObjectName{"default", "c"}, claim);
  Mailbox<absl::Status> shown;
  const auto show = [&] {
    endpoint_->ShowObjectsOf([objects] { return objects; });
    EXPECT_TRUE(endpoint_->source().Refresh(
        ObjectKind::kResourceClaim, {"default", "c"},
        [&](const absl::Status& done) { shown.Put(done); }));
    EXPECT_TRUE(shown.Take().value().ok());
  };
  show();
  const auto said = [&] {
    const auto& all = endpoint_->source().Snapshot()->device_statuses;
    const auto* found = all.Find(ObjectName{"default", "c"});
    return found == nullptr ? nullptr : *found;
  };
  EXPECT_EQ(said(), nullptr);
  const auto apply = [&] {
    return Call("PATCH", status + "?fieldManager=gpu.example.com&force=true",
                R"({"apiVersion": "resource.k8s.io/v1",
                    "kind": "ResourceClaim", "metadata": {"name": "c"},
                    "status": {"devices": )" +
                    entries + "}}",
                "application/apply-patch+yaml");
  };
  ASSERT_EQ(apply().code, 200);
  changes_.Take();
  ASSERT_NE(said(), nullptr);
  EXPECT_EQ(said()->uid, "u-c");
  ASSERT_THAT(said()->devices, SizeIs(1));
  EXPECT_EQ(said()->devices[0].data, R"({"speed":3})");
  ASSERT_TRUE(said()->devices[0].network_data.has_value());
  EXPECT_THAT(said()->devices[0].network_data->ips,
              ::testing::ElementsAre("192.0.2.5/24"));
  // Objects as they are shown after that change nothing, though what they have
  // is older.
  const auto revision = [&] {
    return Call("GET", endpoint::kClaim).json()["metadata"]["resourceVersion"];
  };
  const auto before = revision();
  claim = std::make_shared<ResourceClaim>(*claim);
  claim->status.devices = said()->devices;
  claim->status.devices[0].data = R"({"speed":1})";
  objects->claims.insert_or_assign(ObjectName{"default", "c"}, claim);
  show();
  EXPECT_EQ(revision(), before);

  Stop();
  Start();
  ASSERT_NE(said(), nullptr) << "it outlives a restart";
  EXPECT_THAT(said()->devices, SizeIs(1));
  show();
  EXPECT_EQ(revision(), before);
  // With the claim, what was said of it goes.
  objects->claims.erase(ObjectName{"default", "c"});
  show();
  EXPECT_EQ(said(), nullptr);
  EXPECT_EQ(Call("GET", endpoint::kClaim).code, 404);
  Stop();
  Start();
  EXPECT_EQ(said(), nullptr);
  Stop();
}

TEST_F(DriverEndpointTest, IsServedFromTheFirstDriverOn) {
  options_.drivers.clear();
  Start();
  EXPECT_EQ(endpoint_->server(), "");
  EXPECT_FALSE(std::filesystem::exists(options_.kubeconfig_dir));
  EXPECT_EQ(endpoint_->AddDriver("No Driver").status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(endpoint_->AddDriver("../d").status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(endpoint_->server(), "");
  const auto path = endpoint_->AddDriver(endpoint::kDriver);
  ASSERT_TRUE(path.ok()) << path.status();
  EXPECT_EQ(*path, options_.kubeconfig_dir / endpoint::kDriver);
  EXPECT_EQ(Call("GET", "/api/v1/nodes/n1").code, 200);
  EXPECT_TRUE(endpoint_->AddDriver(endpoint::kDriver).ok());
  EXPECT_TRUE(endpoint_->AddDriver("other.example.com").ok());
  // It may connect after a restart as well.
  Stop();
  Start();
  EXPECT_EQ(Call("GET", "/api/v1/nodes/n1").code, 200);
  Stop();
}

TEST_F(DriverEndpointTest, SlicesAreDeletedForAnOperator) {
  Start();
  EXPECT_EQ(Call("POST", endpoint::kSlices, Bed::Slice("s").dump()).code, 201);
  changes_.Take();
  EXPECT_THAT(endpoint_->SliceNames(), ::testing::ElementsAre("s"));
  EXPECT_EQ(endpoint_->DeleteSlices("other.example.com").value_or(7), 0u);
  EXPECT_THAT(Slices(), SizeIs(1));
  EXPECT_EQ(endpoint_->DeleteSlices(endpoint::kDriver).value_or(7), 1u);
  EXPECT_THAT(Slices(), IsEmpty());
  EXPECT_THAT(endpoint_->SliceNames(), IsEmpty());
  Stop();
  Start();
  EXPECT_THAT(Slices(), IsEmpty());
  Stop();
}

TEST_F(DriverEndpointTest, SaysWhatKeepsItFromStarting) {
  options_.node_name.clear();
  auto made = DriverEndpoint::Create(options_, *files_);
  EXPECT_EQ(made.status().code(), absl::StatusCode::kInvalidArgument);
  options_.node_name = "n1";
  options_.drivers = {"No Driver"};
  made = DriverEndpoint::Create(options_, *files_);
  EXPECT_EQ(made.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(made.status().message()), HasSubstr("No Driver"));
  options_.drivers = {endpoint::kDriver};
  made = DriverEndpoint::Create(options_, *files_);
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_EQ((*made)->Serve(nullptr).code(), absl::StatusCode::kInvalidArgument);
  // What drivers have published, and no record of ours.
  const ObjectSpace::Change broken{"resource.k8s.io/resourceslices//s", "x"};
  ASSERT_TRUE(kept_->Write({&broken, 1}).ok());
  const absl::Status served = (*made)->Serve(kept_);
  EXPECT_EQ(served.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(served.message()), HasSubstr(broken.key));
  EXPECT_EQ((*made)->server(), "");
  // Not where damage is to be got over.
  options_.recovery = Recovery::kLenient;
  Start();
  EXPECT_THAT(log_.Take().value_or(""), HasSubstr(broken.key));
  EXPECT_NE(endpoint_->server(), "");
  Stop();
}

/// Nothing is decided before what drivers have published is known.
TEST_F(DriverEndpointTest, HasNothingBeforeItServes) {
  Start();
  EXPECT_EQ(Call("POST", endpoint::kSlices, Bed::Slice("s").dump()).code, 201);
  Stop();
  auto made = DriverEndpoint::Create(options_, *files_);
  ASSERT_TRUE(made.ok()) << made.status();
  endpoint_ = *std::move(made);
  endpoint_->source().Subscribe([this] { changes_.Put(0); });
  EXPECT_FALSE(endpoint_->source().Snapshot()->complete);
  EXPECT_THAT(Slices(), IsEmpty());
  EXPECT_EQ(endpoint_->server(), "");
  ASSERT_TRUE(endpoint_->Serve(kept_).ok());
  changes_.Take();
  EXPECT_TRUE(endpoint_->source().Snapshot()->complete);
  EXPECT_THAT(Slices(), SizeIs(1));
  // It serves no more, and what it had stays.
  endpoint_->Stop();
  EXPECT_EQ(endpoint_->server(), "");
  EXPECT_THAT(Slices(), SizeIs(1));
  EXPECT_EQ(endpoint_->AddDriver("other.example.com").status().code(),
            absl::StatusCode::kUnavailable);
  EXPECT_EQ(endpoint_->DeleteSlices(endpoint::kDriver).status().code(),
            absl::StatusCode::kUnavailable);
  Stop();
}

/// What a node has kept with the last version that kept objects as files: one
/// slice, and a claim as drivers were shown it. Revisions up to 1004 may have
/// been used.
TEST_F(DriverEndpointTest, TakesOverTheFilesOfAnEarlierVersion) {
  std::filesystem::create_directories(options_.state_dir);
  std::filesystem::copy(DEVMGR_ENDPOINT_FILES, options_.state_dir,
                        std::filesystem::copy_options::recursive);
  const std::string slice =
      std::string(endpoint::kSlices) + "/n1-gpu.example.com-r2z7p";
  for (int start = 0; start < 2; ++start) {
    Start();
    EXPECT_THAT(Slices(), SizeIs(1));
    const endpoint::Reply got = Call("GET", slice);
    EXPECT_EQ(got.code, 200);
    EXPECT_THAT(got.body, HasSubstr("\"resourceVersion\":\"3\""));
    EXPECT_THAT(got.body,
                HasSubstr("\"uid\":\"720a5d2f-edce-4d67-b45c-6e1136cd3ae0\""));
    EXPECT_THAT(Call("GET", endpoint::kClaim).body,
                HasSubstr("\"resourceVersion\":\"4\""));
    EXPECT_FALSE(std::filesystem::exists(options_.state_dir / "objects"));
    const endpoint::Reply made =
        Call("POST", endpoint::kSlices, Bed::Slice("s").dump());
    ASSERT_EQ(made.code, 201) << made.body;
    const auto version =
        apistore::Json::parse(made.body)["metadata"]["resourceVersion"];
    EXPECT_GT(std::stoi(version.get<std::string>()), 1'004);
    EXPECT_EQ(Call("DELETE", std::string(endpoint::kSlices) + "/s").code, 200);
    Stop();
  }
}

/// An operator's call comes while the ledger is being loaded.
TEST_F(DriverEndpointTest, WaitsWithANewDriverUntilItServes) {
  options_.drivers.clear();
  auto made = DriverEndpoint::Create(options_, *files_);
  ASSERT_TRUE(made.ok()) << made.status();
  endpoint_ = *std::move(made);
  absl::StatusOr<std::filesystem::path> added;
  std::thread caller([&] { added = endpoint_->AddDriver(endpoint::kDriver); });
  ASSERT_TRUE(endpoint_->Serve(kept_).ok());
  caller.join();
  EXPECT_TRUE(added.ok()) << added.status();
  Stop();
}

}  // namespace
}  // namespace devmgr
