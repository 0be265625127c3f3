// SPDX-License-Identifier: Apache-2.0
//
// Instances and their registry: who may come, what becomes of him.
#include <functional>

#include "common/status.h"
#include "plugin/registry_fixture.h"
#include "support/status_matchers.h"

namespace devmgr::plugin {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

// DP-001
TEST_F(PluginRegistryTest, ConnectsAsksForOptionsAndListens) {
  Register();
  EXPECT_THAT(peer_.dialed(), ElementsAre("/d/p.sock"));
  EXPECT_THAT(registered_, IsEmpty());
  EXPECT_EQ(Only().state, InstanceState::kAsking);
  EXPECT_EQ(peer_.calls()[0].timeout, seconds(10));
  Answer(kOptionsPath, OptionsOf(true, true));
  ASSERT_THAT(registered_, SizeIs(1));
  EXPECT_THAT(registered_[0], IsOk());
  EXPECT_EQ(Only().state, InstanceState::kListening);
  EXPECT_TRUE(listener_.options_[kResource].pre_start_required);
  EXPECT_TRUE(listener_.options_[kResource].preferred_allocation);
  EXPECT_EQ(peer_.calls()[1].timeout, milliseconds(0));
  Tell({"a", "b"});
  EXPECT_EQ(Only().state, InstanceState::kLive);
  EXPECT_EQ(Only().devices, 2u);
  EXPECT_THAT(listener_.Take(), ElementsAre("connected example.com/dev 1",
                                            "list example.com/dev 1: a b"));
  EXPECT_EQ(CallsOf(kOptionsPath), 1u);
  EXPECT_EQ(CallsOf(kListPath), 1u);
  EXPECT_EQ(listener_.registrations_[kResource], 1);
}

// DP-002
TEST_F(PluginRegistryTest, RefusesAnotherVersionWithoutDialling) {
  Register("p.sock", kResource, "v1alpha2");
  EXPECT_THAT(registered_[0],
              StatusIs(absl::StatusCode::kInvalidArgument,
                       testing::AllOf(HasSubstr("\"v1alpha2\""),
                                      HasSubstr("[\"v1beta1\"]"))));
  EXPECT_THAT(peer_.dialed(), IsEmpty());
  EXPECT_EQ(listener_.registrations_[kResource], 1);
}

// DP-003
TEST_F(PluginRegistryTest, RefusesNamesThatAreNoExtendedResources) {
  for (const char* name : {"gpu", "kubernetes.io/gpu", "x.kubernetes.io/gpu",
                           "requests.example.com/dev", "example.com/a/b",
                           "Example.com/gpu", "example.com/-x", ""}) {
    Register("p.sock", name);
    EXPECT_EQ(MessageOf(registered_.back()),
              fmt::format("the ResourceName \"{}\" is invalid", name));
  }
  EXPECT_THAT(peer_.dialed(), IsEmpty());
  // The label of a metric is not the plugin's to choose: W-30.
  EXPECT_EQ(listener_.registrations_["invalid"], 8);
  EXPECT_EQ(listener_.registrations_.size(), 1u);
}

// DP-004
TEST_F(PluginRegistryTest, TakesNamesUpToTheLimits) {
  const auto prefix = [](int size) {
    return std::string(static_cast<std::size_t>(size) - 4, 'a') + ".com/";
  };
  const auto last = [](int size) {
    return std::string(static_cast<std::size_t>(size), 'n');
  };
  for (const auto& [name, fine] :
       {std::pair(prefix(244) + "x", true), std::pair(prefix(245) + "x", false),
        std::pair("a.com/" + last(63), true),
        std::pair("a.com/" + last(64), false)}) {
    const std::size_t before = peer_.dialed().size();
    Register("p.sock", name);
    EXPECT_EQ(peer_.dialed().size() > before, fine) << name;
  }
}

// W-30
TEST_F(PluginRegistryTest, TakesPlainFileNamesOnly) {
  for (const std::string& endpoint :
       {std::string("../p.sock"), std::string("/p.sock"), std::string("a/b"),
        std::string(""), std::string("."), std::string(".."),
        std::string("a\0b", 3), std::string(300, 'x')}) {
    Register(endpoint);
    EXPECT_THAT(registered_.back(),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr("is not the name of a file in /d")));
  }
  EXPECT_THAT(peer_.dialed(), IsEmpty());
}

// DP-005
TEST_F(PluginRegistryTest, DialsFor10SecondsAndFails) {
  peer_.set_dial_status(UnavailableError("nobody listens"));
  Register();
  EXPECT_THAT(registered_, IsEmpty());
  executor_.Advance(milliseconds(10'000));
  EXPECT_THAT(registered_,
              ElementsAre(StatusIs(absl::StatusCode::kUnavailable,
                                   "failed to dial device plugin: nobody "
                                   "listens")));
  EXPECT_THAT(peer_.dialed(), SizeIs(testing::Gt(5u)));
  EXPECT_THAT(registry_->Instances(), IsEmpty());
  EXPECT_THAT(listener_.Take(), IsEmpty());
  EXPECT_EQ(executor_.timers(), 0u);
}

TEST_F(PluginRegistryTest, WaitsForAPluginThatRegistersBeforeItListens) {
  peer_.set_dial_status(UnavailableError("nobody listens"));
  Register();
  executor_.Advance(milliseconds(400));
  peer_.set_dial_status(absl::OkStatus());
  executor_.Advance(milliseconds(400));
  Answer(kOptionsPath, OptionsOf(false, false));
  EXPECT_THAT(registered_, ElementsAre(IsOk()));
}

// DP-006
TEST_F(PluginRegistryTest, FailsWhenTheOptionsDo) {
  Register();
  Answer(kOptionsPath, InternalError("no driver"));
  EXPECT_THAT(registered_,
              ElementsAre(StatusIs(absl::StatusCode::kInternal,
                                   "failed to get device plugin options: no "
                                   "driver")));
  EXPECT_EQ(peer_.calls().size(), 1u);
  EXPECT_EQ(peer_.open(), 0);  // W-05
  EXPECT_THAT(registry_->Instances(), IsEmpty());
  EXPECT_EQ(executor_.timers(), 0u);
}

TEST_F(PluginRegistryTest, FailsWhenThePluginHangsUpOverItsOptions) {
  Register();
  peer_.HangUp(0);
  executor_.RunPending();
  EXPECT_THAT(registered_,
              ElementsAre(StatusIs(absl::StatusCode::kUnavailable,
                                   HasSubstr("failed to get device plugin "
                                             "options: the plugin hung up"))));
  EXPECT_EQ(peer_.open(), 0);
}

// DP-009, DP-014: several instances, each with its own connection.
TEST_F(PluginRegistryTest, KeepsInstancesOfOneResourceApart) {
  GoLive("a.sock");
  GoLive("b.sock");
  EXPECT_THAT(registry_->Instances(), SizeIs(2));
  EXPECT_THAT(listener_.Take(), SizeIs(4));
  peer_.HangUp(0);
  peer_.set_dial_status(UnavailableError("nobody listens"));
  executor_.RunPending();
  executor_.Advance(milliseconds(50));
  EXPECT_THAT(listener_.Take(),
              ElementsAre("gone example.com/dev 1: the plugin hung up"));
  EXPECT_EQ(Only().generation, 2u);
  EXPECT_EQ(Only().state, InstanceState::kLive);
}

// DP-012, W-04: the kubelet refuses the second one, possibly for ever.
TEST_F(PluginRegistryTest, ARegistrationAtTheSameSocketReplacesTheOld) {
  GoLive();
  listener_.Take();
  Register();
  EXPECT_THAT(listener_.Take(), IsEmpty());
  EXPECT_THAT(registry_->Instances(), SizeIs(2));
  Answer(kOptionsPath, OptionsOf(false, false));
  EXPECT_THAT(registered_.back(), IsOk());
  EXPECT_THAT(listener_.Take(),
              ElementsAre("connected example.com/dev 2",
                          "gone example.com/dev 1: another registration came "
                          "for the same socket"));
  Tell({"b"});
  EXPECT_EQ(Only().generation, 2u);
  EXPECT_EQ(peer_.open(), 1);
  // What the old one still says is dropped.
  peer_.TellHangUp(0);
  executor_.RunPending();
  EXPECT_THAT(listener_.Take(), ElementsAre("list example.com/dev 2: b"));
  EXPECT_EQ(Only().state, InstanceState::kLive);
}

TEST_F(PluginRegistryTest, ARegistrationThatFailsLeavesTheOldAlone) {
  GoLive();
  listener_.Take();
  Register();
  Answer(kOptionsPath, InternalError("no"));
  EXPECT_THAT(listener_.Take(), IsEmpty());
  EXPECT_EQ(Only().generation, 1u);
  EXPECT_EQ(Only().state, InstanceState::kLive);
}

TEST_F(PluginRegistryTest, OneRegistrationPerSocketIsUnderWay) {
  for (int i = 0; i < 20; ++i) Register();
  EXPECT_THAT(registry_->Instances(), SizeIs(1));
  EXPECT_EQ(peer_.open(), 1);
  EXPECT_THAT(registered_, SizeIs(19));
  EXPECT_THAT(registered_.back(), StatusIs(absl::StatusCode::kUnavailable,
                                           HasSubstr("another registration")));
}

// Each was a connection, 5,000 a second.
TEST_F(PluginRegistryTest, APluginThatRegistersInALoopIsTakenInNowAndThen) {
  for (int i = 0; i < 100; ++i) Register();
  EXPECT_THAT(peer_.dialed(), SizeIs(20));
  EXPECT_THAT(registered_.back(), StatusIs(absl::StatusCode::kResourceExhausted,
                                           HasSubstr("registers too often")));
  for (int i = 0; i < 10; ++i) {
    executor_.Advance(milliseconds(500));
    Register();
  }
  EXPECT_THAT(peer_.dialed(), SizeIs(25));
}

// A new name is no new plugin.
TEST_F(PluginRegistryTest, OneThatComesUnderOtherNamesIsTakenInNowAndThen) {
  for (int i = 0; i < 100; ++i) {
    Register("bad.sock", fmt::format("example.com/bad-{}", i));
  }
  EXPECT_THAT(peer_.dialed(), SizeIs(20));
}

TEST_F(PluginRegistryTest, BoundsTheInstances) {
  PluginRegistryOptions options;
  options.max_instances = 2;
  Make(options);
  Register("a.sock");
  Register("b.sock");
  Register("c.sock");
  EXPECT_THAT(registered_,
              ElementsAre(StatusIs(absl::StatusCode::kResourceExhausted,
                                   HasSubstr("2 device plugins"))));
}

// A thousand that do not listen took half of a processor, before.
TEST_F(PluginRegistryTest, BoundsThoseThatDoNotListenYet) {
  PluginRegistryOptions options;
  options.max_waiting_for_socket = 2;
  Make(options);
  peer_.set_dial_status(UnavailableError("nobody listens"));
  Register("a.sock", "example.com/a");
  Register("b.sock", "example.com/b");
  EXPECT_THAT(registered_, IsEmpty());
  Register("c.sock", "example.com/c");
  EXPECT_THAT(registered_, ElementsAre(StatusIs(absl::StatusCode::kUnavailable,
                                                HasSubstr("failed to dial"))));
  peer_.set_dial_status(absl::OkStatus());
  Register("d.sock", "example.com/d");
  executor_.Advance(milliseconds(100));
  EXPECT_THAT(registry_->Instances(), SizeIs(3));
  EXPECT_THAT(registered_, SizeIs(1));
}

// DP-054, W-22: the kubelet never comes back.
TEST_F(PluginRegistryTest, DialsAgainWhenTheStreamBreaks) {
  GoLive();
  listener_.Take();
  EndList(UnavailableError("broken"));
  EXPECT_THAT(listener_.Take(),
              ElementsAre("gone example.com/dev 1: ListAndWatch: broken"));
  EXPECT_EQ(Only().state, InstanceState::kBackingOff);
  EXPECT_EQ(peer_.open(), 0);
  executor_.Advance(milliseconds(50));
  Answer(kOptionsPath, OptionsOf(true, false));
  Tell({"a"});
  EXPECT_THAT(listener_.Take(), ElementsAre("connected example.com/dev 2",
                                            "list example.com/dev 2: a"));
  EXPECT_TRUE(listener_.options_[kResource].pre_start_required);
}

// DP-053: a stream that never works is not tried for ever.
TEST_F(PluginRegistryTest, GivesUpAfterSoManyConnections) {
  Register();
  Answer(kOptionsPath, OptionsOf(false, false));
  EXPECT_THAT(registered_, ElementsAre(IsOk()));
  int redials = 0;
  for (int delay = 50; !registry_->Instances().empty(); delay *= 2) {
    EndList(UnimplementedError("no lists"));
    if (registry_->Instances().empty()) break;
    executor_.Advance(milliseconds(std::min(delay, 30'000)));
    ASSERT_LT(++redials, 100);
    Answer(kOptionsPath, OptionsOf(false, false));
  }
  EXPECT_EQ(redials, 10);
  EXPECT_EQ(listener_.infos_.back().state, InstanceState::kClosed);
  EXPECT_THAT(listener_.infos_.back().last_error,
              HasSubstr("given up after 10 connections: ListAndWatch: no "
                        "lists"));
  EXPECT_EQ(executor_.timers(), 0u);
}

TEST_F(PluginRegistryTest, AConnectionThatLastedStartsTheCountAnew) {
  GoLive();
  for (int i = 0; i < 30; ++i) {
    executor_.Advance(seconds(30));
    EndList(absl::OkStatus());
    ASSERT_EQ(Only().state, InstanceState::kBackingOff) << i;
    executor_.Advance(milliseconds(50));
    Answer(kOptionsPath, OptionsOf(false, false));
    Tell({"a"});
  }
}

TEST_F(PluginRegistryTest, EndsWhenNobodyListensAnyMore) {
  GoLive();
  peer_.set_dial_status(UnavailableError("nobody listens"));
  peer_.HangUp(0);
  executor_.RunPending();
  executor_.Advance(milliseconds(50));
  EXPECT_THAT(registry_->Instances(), IsEmpty());
  EXPECT_EQ(executor_.timers(), 0u);
  EXPECT_THAT(listener_.infos_.back().last_error, HasSubstr("nobody listens"));
}

// Each list was followed by a pause: of 64 devices that failed one after the
// other 39 still counted as healthy half a second later.
TEST_F(PluginRegistryTest, ABurstOfListsIsReadWithoutAPause) {
  GoLive();
  const std::size_t stream = LastCall(kListPath);
  for (int i = 0; i < 1'000; ++i) {
    ASSERT_TRUE(peer_.calls()[stream].reading) << i;
    Tell({"a", "b"});
  }
  EXPECT_EQ(executor_.timers(), 0u);
}

TEST_F(PluginRegistryTest, ListsWithoutEndGetTheirShareAndNoMore) {
  PluginRegistryOptions options;
  options.instance.lists = {milliseconds(10), 20};
  Make(options);
  GoLive();
  std::vector<std::string> many;
  for (int i = 0; i < 11'399; ++i) many.push_back(std::to_string(i));
  const std::size_t stream = LastCall(kListPath);
  // With the first list, 11.8 ms of work: 1.8 ms over the budget.
  Tell(many);
  EXPECT_FALSE(peer_.calls()[stream].reading);
  executor_.Advance(milliseconds(8));
  EXPECT_FALSE(peer_.calls()[stream].reading);
  executor_.Advance(milliseconds(1));
  EXPECT_TRUE(peer_.calls()[stream].reading);
  EXPECT_EQ(executor_.timers(), 0u);
}

/// A plugin whose first list has spent its budget: the next one that is taken
/// in is so 14 ms later.
class BusyPluginTest : public PluginRegistryTest {
 protected:
  BusyPluginTest() {
    PluginRegistryOptions options;
    options.instance.lists = {milliseconds(10), 20};
    options.catch_up = seconds(1);
    Make(options);
    GoLive();
    TellMany();
    listener_.Take();
  }

  void TellMany() {
    std::vector<std::string> many;
    for (int i = 0; i < 12'400; ++i) many.push_back(std::to_string(i));
    Tell(many);
  }

  void AskWhenCurrent() {
    registry_->WhenCurrent(
        {kResource, "example.com/other"},
        [this](const absl::Status& status, const std::string& late) {
          current_.push_back(status);
          late_ = late;
          heard_by_then_ = listener_.Take();
        });
  }

  std::vector<absl::Status> current_;
  std::string late_;
  std::vector<std::string> heard_by_then_;
};

// Each that waited was taken in after the other, though newer ones had come.
TEST_F(BusyPluginTest, ListsThatNewerOnesFollowAreSkipped) {
  Tell({"a", "b"});
  Tell({"a"});
  Tell({});
  EXPECT_THAT(listener_.Take(), IsEmpty());
  executor_.Advance(milliseconds(20));
  EXPECT_THAT(listener_.Take(), ElementsAre("list example.com/dev 1:"));
  executor_.Advance(milliseconds(20));
  EXPECT_THAT(listener_.Take(), IsEmpty());
}

// Nothing is decided on a list that is older than one that has come.
TEST_F(BusyPluginTest, ThoseWhoNeedTheNewestListWaitForIt) {
  AskWhenCurrent();
  EXPECT_THAT(std::exchange(current_, {}), ElementsAre(IsOk()));
  Tell({"a"});
  Tell({"b"});
  AskWhenCurrent();
  EXPECT_THAT(current_, IsEmpty());
  executor_.Advance(milliseconds(20));
  EXPECT_THAT(current_, ElementsAre(IsOk()));
  EXPECT_THAT(heard_by_then_, ElementsAre("list example.com/dev 1: b"));
  EXPECT_EQ(executor_.timers(), 0u);
}

// It has been decoded, and waits for its turn on the executor.
TEST_F(PluginRegistryTest, AListThatIsOnItsWayIsWaitedFor) {
  GoLive();
  listener_.Take();
  peer_.SendMessage(LastCall(kListPath), ListOf({"b"}));
  std::vector<std::string> heard;
  registry_->WhenCurrent({kResource},
                         [&](const absl::Status& status, const std::string&) {
                           EXPECT_THAT(status, IsOk());
                           heard = listener_.Take();
                         });
  EXPECT_THAT(heard, IsEmpty());
  executor_.RunPending();
  EXPECT_THAT(heard, ElementsAre("list example.com/dev 1: b"));
}

TEST_F(BusyPluginTest, AFloodIsNotWaitedForWithoutEnd) {
  Tell({"a"});
  AskWhenCurrent();
  // Before one is taken in, the next has come.
  listener_.on_note_ = [&](const std::string&) {
    peer_.SendMessage(LastCall(kListPath), ListOf({"a"}));
  };
  executor_.Advance(milliseconds(999));
  EXPECT_THAT(listener_.Take(), SizeIs(testing::Gt(100u)));
  EXPECT_THAT(current_, IsEmpty());
  executor_.Advance(milliseconds(1));
  EXPECT_THAT(current_,
              ElementsAre(StatusIs(
                  absl::StatusCode::kUnavailable,
                  "the device plugin of 'example.com/dev' sends lists faster "
                  "than they are taken in")));
  EXPECT_EQ(late_, kResource);
}

TEST_F(BusyPluginTest, APluginThatGoesIsNotWaitedFor) {
  Tell({"a"});
  AskWhenCurrent();
  EndList(UnavailableError("broken"));
  EXPECT_THAT(current_, ElementsAre(IsOk()));
  EXPECT_THAT(heard_by_then_,
              ElementsAre("gone example.com/dev 1: ListAndWatch: broken"));
}

// What an instance says that does not serve any more changes no decision.
TEST_F(BusyPluginTest, AnInstanceThatWasReplacedIsNotWaitedFor) {
  const std::size_t old = LastCall(kListPath);
  peer_.SendMessage(old, ListOf({"a"}));
  GoLive("new.sock");
  EXPECT_TRUE(peer_.calls()[old].kept.has_value());
  AskWhenCurrent();
  EXPECT_THAT(current_, ElementsAre(IsOk()));
}

TEST_F(PluginRegistryTest, AListThatIsNoneEndsTheConnection) {
  GoLive();
  listener_.Take();
  peer_.SendMessage(LastCall(kListPath), "\xff\xff");
  executor_.RunPending();
  EXPECT_THAT(listener_.Take(),
              ElementsAre("gone example.com/dev 1: ListAndWatch: 2 bytes are "
                          "not a ListAndWatchResponse"));
}

registration::Plugin DirectoryPlugin(const std::string& endpoint = "/x/p.sock",
                                     const std::string& name = kResource) {
  registration::Plugin plugin = {
      "DevicePlugin", name, endpoint, {"v1beta1"}, "/x/p.sock"};
  plugin.registration = std::hash<std::string>()(endpoint);
  return plugin;
}

TEST_F(PluginRegistryTest, ChecksPluginsOfTheDirectory) {
  EXPECT_THAT(registry_->Validate(DirectoryPlugin()), IsOk());
  EXPECT_THAT(MessageOf(registry_->Validate(DirectoryPlugin("/x", "gpu"))),
              "the ResourceName \"gpu\" is invalid");
  EXPECT_THAT(registry_->Validate(DirectoryPlugin("x.sock")),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("not an absolute path")));
  // DP-034
  auto plugin = DirectoryPlugin();
  plugin.supported_versions = {"v1alpha"};
  registry_->Register(
      plugin, [this](absl::Status status) { registered_.push_back(status); });
  EXPECT_THAT(registered_.back(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("not among plugin supported versions")));
  EXPECT_THAT(peer_.dialed(), IsEmpty());
}

TEST_F(PluginRegistryTest, ADirectoryPluginGoesWithItsSocket) {
  registry_->Register(DirectoryPlugin(), [this](absl::Status status) {
    registered_.push_back(status);
  });
  Answer(kOptionsPath, OptionsOf(false, false));
  EXPECT_THAT(registered_, ElementsAre(IsOk()));
  EXPECT_EQ(Only().via, Via::kDirectory);
  // DP-016: others are not touched.
  registry_->Deregister(DirectoryPlugin("/x/other.sock"));
  registry_->Deregister(DirectoryPlugin("/x/p.sock", "example.com/other"));
  EXPECT_THAT(registry_->Instances(), SizeIs(1));
  listener_.Take();
  registry_->Deregister(DirectoryPlugin());
  EXPECT_THAT(registry_->Instances(), IsEmpty());
  EXPECT_THAT(listener_.Take(), ElementsAre("gone example.com/dev 1: its "
                                            "registration socket is gone"));
}

// A second registration socket of a plugin took the living instance along when
// it went, be it late or refused.
TEST_F(PluginRegistryTest, ARegistrationTakesOnlyItsOwnInstanceAlong) {
  const auto done = [this](absl::Status status) {
    registered_.push_back(status);
  };
  registry_->Register(DirectoryPlugin(), done);
  Answer(kOptionsPath, OptionsOf(false, false));
  Tell({"a"});
  registration::Plugin second = DirectoryPlugin();
  ++second.registration;
  registry_->Register(second, done);
  registry_->Deregister(second);
  EXPECT_THAT(registered_,
              ElementsAre(IsOk(), StatusIs(absl::StatusCode::kUnavailable)));
  EXPECT_EQ(Only().generation, 1u);
  EXPECT_EQ(Only().state, InstanceState::kLive);
  // One that replaced it stays when the old socket goes.
  registry_->Register(second, done);
  Answer(kOptionsPath, OptionsOf(false, false));
  registry_->Deregister(DirectoryPlugin());
  EXPECT_EQ(Only().generation, 2u);
  registry_->Deregister(second);
  EXPECT_THAT(registry_->Instances(), IsEmpty());
}

TEST_F(PluginRegistryTest, ADirectoryPluginMayGoWhileItConnects) {
  registry_->Register(DirectoryPlugin(), [this](absl::Status status) {
    registered_.push_back(status);
  });
  registry_->Deregister(DirectoryPlugin());
  EXPECT_THAT(registered_,
              ElementsAre(StatusIs(absl::StatusCode::kUnavailable)));
  EXPECT_EQ(peer_.open(), 0);
  executor_.RunPending();
  EXPECT_THAT(listener_.Take(), IsEmpty());
}

// DP-019
TEST_F(PluginRegistryTest, ClosesAllConnectionsWhenItGoes) {
  GoLive("a.sock");
  Register("b.sock");
  Allocate(1);
  listener_.Take();
  registry_.reset();
  EXPECT_EQ(peer_.open(), 0);
  executor_.RunPending();
  EXPECT_THAT(listener_.Take(), IsEmpty());
  EXPECT_THAT(registered_, SizeIs(2));
  EXPECT_THAT(allocated_, ElementsAre(StatusIs(absl::StatusCode::kAborted)));
  EXPECT_EQ(executor_.timers(), 0u);
}

TEST_F(PluginRegistryTest, AListenerMayCallBack) {
  listener_.on_note_ = [this](const std::string&) {
    registry_->Instances();
    registry_->Allocate(kResource, 1, {"a"}, {}, [](const auto&) {});
    registry_->Deregister(DirectoryPlugin());
  };
  registry_->Register(DirectoryPlugin(), [this](absl::Status status) {
    registered_.push_back(status);
  });
  Answer(kOptionsPath, OptionsOf(false, false));
  EXPECT_THAT(registry_->Instances(), IsEmpty());
  EXPECT_THAT(listener_.Take(), SizeIs(2));
  EXPECT_THAT(registered_, SizeIs(1));
}

}  // namespace
}  // namespace devmgr::plugin
