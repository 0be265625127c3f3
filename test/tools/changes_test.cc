// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "tools/command_line.h"

namespace devmgr::ctl {
namespace {

using std::chrono::milliseconds;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class ChangesTest : public CommandLineTest {
 protected:
  ChangesTest() {
    node_.changes = [this](const ChangesFrom& from) { return Read(from); };
  }

  DeviceChange MakeChange(std::uint64_t sequence, DeviceChangeKind kind,
                          const std::string& pod,
                          const std::string& ns = "default") {
    DeviceChange change;
    change.token = {sequence};
    change.time = now_;
    change.kind = kind;
    change.pod = {ns, pod};
    change.pod_uid = {"u-" + pod};
    change.container = "c";
    change.resource = "example.com/gpu";
    change.devices = {"gpu0", "gpu1"};
    change.cdi_devices = {"example.com/gpu=0"};
    change.reason = "Allocated";
    return change;
  }

  /// Two at a time.
  absl::StatusOr<DeviceChanges> Read(const ChangesFrom& from) {
    asked_.push_back(from);
    DeviceChanges some;
    some.next = {0};
    if (const auto* after = std::get_if<ChangeToken>(&from)) {
      if (*after < oldest_) return absl::OutOfRangeError("too old: ...");
      some.next = *after;
    }
    for (const DeviceChange& change : changes_) {
      if (change.token <= some.next) continue;
      if (some.changes.size() == 2) {
        some.more = true;
        break;
      }
      some.changes.push_back(change);
    }
    if (!some.changes.empty()) some.next = some.changes.back().token;
    return some;
  }

  std::vector<std::string> TokensOf(const std::string& lines) {
    std::vector<std::string> tokens;
    std::istringstream in(lines);
    for (std::string line; std::getline(in, line);) {
      tokens.push_back(nlohmann::json::parse(line)["object"]["token"]);
    }
    return tokens;
  }

  /// Ends a stream, which else would go on for good.
  void EndStream() { node_.health = absl::InternalError("end of test"); }

  std::vector<DeviceChange> changes_ = {
      MakeChange(3, DeviceChangeKind::kAllocated, "a"),
      MakeChange(4, DeviceChangeKind::kAllocated, "b", "other"),
      MakeChange(7, DeviceChangeKind::kReleased, "a")};
  ChangeToken oldest_{0};
  std::vector<ChangesFrom> asked_;
};

TEST_F(ChangesTest, ListsWhatTheHistoryHas) {
  const Result result = Run({"get", "changes"});
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_THAT(result.out, AllOf(HasSubstr("Allocated"), HasSubstr("Released"),
                                HasSubstr("other/b"), HasSubstr("gpu0,gpu1")));
  EXPECT_TRUE(std::holds_alternative<FromOldest>(asked_.front()));
  EXPECT_THAT(Run({"get", "changes", "-n", "other"}).out,
              AllOf(Not(HasSubstr("default/a")), HasSubstr("other/b")));
  EXPECT_EQ(Run({"get", "changes", "-o", "name"}).out,
            "change/3\nchange/4\nchange/7\n");
  EXPECT_THAT(Run({"get", "changes", "-o", "wide"}).out,
              AllOf(HasSubstr("TOKEN"), HasSubstr("example.com/gpu=0")));
}

TEST_F(ChangesTest, ADocumentHasTheTokenToGoOnWith) {
  const auto list = RunJson({"get", "changes"});
  EXPECT_EQ(list["kind"], "DeviceChangeList");
  EXPECT_EQ(list["next"], "7");
  ASSERT_EQ(list["items"].size(), 3u);
  const auto& change = list["items"][0];
  EXPECT_EQ(change["token"], "3");
  EXPECT_EQ(change["change"], "Allocated");
  EXPECT_EQ(change["pod"]["uid"], "u-a");
  EXPECT_EQ(change["devices"][1], "gpu1");
  // What is not known is absent.
  EXPECT_FALSE(change.contains("claim"));
  EXPECT_FALSE(change.contains("health"));
  EXPECT_EQ(RunJson({"get", "changes", "--after", "4"})["items"].size(), 1u);
}

TEST_F(ChangesTest, HealthAndOwnersAreShown) {
  changes_[0].kind = DeviceChangeKind::kHealthChanged;
  changes_[0].health = DeviceHealth::kUnhealthy;
  changes_[1].kind = DeviceChangeKind::kHandedOver;
  changes_[1].owner = ResourceOwner::kDeviceClass;
  EXPECT_THAT(Run({"get", "changes"}).out,
              AllOf(HasSubstr("Unhealthy"), HasSubstr("DeviceClass")));
  const auto list = RunJson({"get", "changes"});
  EXPECT_EQ(list["items"][0]["health"], "Unhealthy");
  EXPECT_EQ(list["items"][1]["owner"], "DeviceClass");
}

TEST_F(ChangesTest, FollowBeginsWithASnapshotAndPrintsEachChangeOnce) {
  int waits = 0;
  node_.on_wait = [&](milliseconds) {
    if (++waits > 1) return EndStream();
    changes_.push_back(MakeChange(9, DeviceChangeKind::kReleased, "b"));
  };
  const Result result = Run({"get", "changes", "-f", "-o", "json"});
  EXPECT_EQ(result.code, 1);
  EXPECT_TRUE(std::holds_alternative<FromSnapshot>(asked_.front()));
  EXPECT_THAT(TokensOf(result.out), ElementsAre("3", "4", "7", "9"));
  EXPECT_THAT(result.out, AllOf(HasSubstr(R"("type":"ADDED")"),
                                HasSubstr(R"("type":"DELETED")"),
                                HasSubstr(R"("kind":"DeviceChange")")));
}

TEST_F(ChangesTest, FollowMissesNothingOverARestartOfTheDaemon) {
  int waits = 0;
  node_.on_wait = [&](milliseconds) {
    if (++waits == 1) {
      node_.health = absl::UnavailableError("gone");
    } else {
      EndStream();
    }
  };
  on_pause_ = [&] {
    node_.health = absl::OkStatus();
    changes_.push_back(MakeChange(9, DeviceChangeKind::kReleased, "b"));
  };
  const Result result =
      Run({"get", "changes", "-f", "--after", "4", "-o", "json"});
  EXPECT_THAT(TokensOf(result.out), ElementsAre("7", "9"));
  EXPECT_THAT(result.err, AllOf(HasSubstr("connection lost"),
                                HasSubstr("connected again")));
}

TEST_F(ChangesTest, ATokenThatIsTooOldIsAnError) {
  oldest_ = {3};
  for (const std::string follow : {"-f", "--no-headers"}) {
    const Result result = Run({"get", "changes", follow, "--after", "2"});
    EXPECT_EQ(result.code, 1);
    EXPECT_THAT(result.out, IsEmpty());
    EXPECT_THAT(result.err, HasSubstr("too old"));
  }
}

TEST_F(ChangesTest, FlagsAreForChangesOnly) {
  EXPECT_EQ(Run({"get", "pods", "-f"}).code, 2);
  EXPECT_THAT(Run({"get", "pods", "--after", "3"}).err,
              HasSubstr("--follow and --after are for changes"));
  EXPECT_EQ(Run({"get", "changes", "x"}).code, 2);
  EXPECT_EQ(Run({"describe", "change", "x"}).code, 2);
  const Result result = Run({"get", "changes", "--after", "x.y"});
  EXPECT_EQ(result.code, 2);
  EXPECT_THAT(result.err, HasSubstr("'x.y' is no token of a change"));
}

TEST_F(ChangesTest, AStateDirectoryCannotBeFollowed) {
  EXPECT_EQ(Run({"--state-dir", "/s", "get", "changes"}).code, 0);
  const Result result = Run({"--state-dir", "/s", "get", "changes", "-f"});
  EXPECT_EQ(result.code, 1);
  EXPECT_THAT(result.err, HasSubstr("running daemon"));
}

}  // namespace
}  // namespace devmgr::ctl
