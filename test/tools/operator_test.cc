// SPDX-License-Identifier: Apache-2.0
//
// get debts, release claim --force, hand-over resource, get holders, free
// holder.
#include <gmock/gmock.h>

#include "tools/command_line.h"

namespace devmgr::ctl {
namespace {

using std::chrono::minutes;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class OperatorTest : public CommandLineTest {
 protected:
  OperatorTest() {
    node_.debts = {{{"default", "gpu"},
                    ClaimUid{"u-gpu"},
                    "gpu.example.com",
                    {"default/p", "default/q"},
                    now_ - minutes(5),
                    7,
                    "DRA driver gpu.example.com is not registered",
                    "block"}};
  }
};

TEST_F(OperatorTest, ListsWhatDriversOwe) {
  const Result result = Run({"get", "debts", "-o", "wide"});
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_THAT(result.out, AllOf(HasSubstr("ATTEMPTS"), HasSubstr("5m"),
                                HasSubstr("default/p,default/q"),
                                HasSubstr("not registered")));
  const Result none = Run({"get", "debts", "-n", "other"});
  EXPECT_EQ(none.code, 0);
  EXPECT_THAT(none.out, IsEmpty());
}

TEST_F(OperatorTest, DebtsAsJsonHaveAllThereIs) {
  const Result result = Run({"get", "debts", "-o", "json"});
  const auto json = nlohmann::json::parse(result.out);
  const auto& debt = json.at("items").at(0).at("status");
  EXPECT_EQ(debt.at("claim"), "gpu");
  EXPECT_EQ(debt.at("namespace"), "default");
  EXPECT_EQ(debt.at("uid"), "u-gpu");
  EXPECT_EQ(debt.at("driver"), "gpu.example.com");
  EXPECT_EQ(debt.at("pods").size(), 2u);
  EXPECT_EQ(debt.at("attempts"), 7);
  EXPECT_EQ(debt.at("lastError"),
            "DRA driver gpu.example.com is not registered");
  EXPECT_EQ(debt.at("policy"), "block");
  EXPECT_TRUE(debt.contains("since"));
}

TEST_F(OperatorTest, GivesAClaimUpOnlyWhenThatIsMeant) {
  const Result shown = Run(
      {"release", "claim", "gpu", "--force", "--reason", "the card is gone"});
  EXPECT_NE(shown.code, 0);
  EXPECT_THAT(shown.err, AllOf(HasSubstr("add --yes"), HasSubstr("7 attempts"),
                               HasSubstr("'default/gpu'")));
  EXPECT_THAT(node_.decisions, IsEmpty());
  node_.debts[0].attempts = 1;
  EXPECT_THAT(Run({"release", "claim", "gpu", "--force", "--reason", "x"}).err,
              HasSubstr("(1 attempt)"));
  const Result done = Run({"release", "claim", "gpu", "--force", "--reason",
                           "the card is gone", "--yes"});
  EXPECT_EQ(done.code, 0) << done.err;
  EXPECT_THAT(done.out, HasSubstr("is given up"));
  EXPECT_THAT(node_.decisions,
              ElementsAre("release default/gpu: the card is gone"));
}

TEST_F(OperatorTest, SaysWhatIsMissing) {
  EXPECT_THAT(Run({"release", "claim", "gpu", "--yes"}).err,
              HasSubstr("add --force"));
  EXPECT_THAT(Run({"release", "claim", "gpu", "--force", "--yes"}).err,
              HasSubstr("--reason"));
  EXPECT_THAT(Run({"release", "pod", "p", "--force"}).err,
              HasSubstr("--force and --reason are for claims"));
  EXPECT_THAT(Run({"hand-over", "resource", "example.com/gpu", "--to", "class",
                   "--yes"})
                  .err,
              HasSubstr("--reason"));
  EXPECT_THAT(Run({"hand-over", "resource", "example.com/gpu", "--to", "me",
                   "--reason", "r"})
                  .err,
              HasSubstr("plugin, class, automatic"));
  EXPECT_THAT(Run({"hand-over", "pod", "p", "--to", "class"}).err,
              HasSubstr("resource"));
  EXPECT_THAT(node_.decisions, IsEmpty());
}

TEST_F(OperatorTest, HandsANameOver) {
  const std::vector<std::string> words = {
      "hand-over", "resource", "example.com/gpu", "--to",
      "class",     "--reason", "to DRA"};
  const Result shown = Run(words);
  EXPECT_NE(shown.code, 0);
  EXPECT_THAT(shown.err, AllOf(HasSubstr("device classes"),
                               HasSubstr("nothing was changed")));
  auto meant = words;
  meant.push_back("--yes");
  const Result done = Run(meant);
  EXPECT_EQ(done.code, 0) << done.err;
  EXPECT_THAT(node_.decisions,
              ElementsAre("hand-over example.com/gpu to class: to DRA"));
}

TEST_F(OperatorTest, HandsTheAuthorityOver) {
  EXPECT_THAT(Run({"authority", "set", "node", "--yes"}).err,
              HasSubstr("--reason"));
  EXPECT_THAT(Run({"authority", "set", "split", "--reason", "r"}).err,
              HasSubstr("node, scheduler"));
  const std::vector<std::string> words = {"authority", "set", "node",
                                          "--reason", "the server is gone"};
  const Result shown = Run(words);
  EXPECT_NE(shown.code, 0);
  EXPECT_THAT(shown.err, HasSubstr("devices would be allocated by: node; "
                                   "nothing was changed"));
  auto meant = words;
  meant.push_back("--yes");
  const Result done = Run(meant);
  EXPECT_EQ(done.code, 0) << done.err;
  EXPECT_THAT(node_.decisions,
              ElementsAre("authority node: the server is gone"));
}

TEST_F(OperatorTest, ConfirmsASourceOnlyWhenThatIsMeant) {
  node_.node.source = "directory /m";
  node_.node.source_problems = {"directory /m lacks 3 of the 4 pods"};
  const Result shown = Run({"confirm", "source", "--reason", "drained"});
  EXPECT_NE(shown.code, 0);
  EXPECT_THAT(shown.err,
              AllOf(HasSubstr("lacks 3 of the 4"), HasSubstr("add --yes")));
  EXPECT_THAT(node_.decisions, IsEmpty());
  const Result done =
      Run({"confirm", "source", "--reason", "drained", "--yes"});
  EXPECT_EQ(done.code, 0) << done.err;
  EXPECT_THAT(done.out, HasSubstr("directory /m is trusted"));
  EXPECT_THAT(node_.decisions, ElementsAre("confirm source: drained"));
  EXPECT_THAT(Run({"confirm", "source", "--yes"}).err, HasSubstr("--reason"));
  EXPECT_THAT(Run({"confirm", "pod", "--reason", "r"}).err,
              HasSubstr("only source"));
}

class HoldersTest : public CommandLineTest {
 protected:
  HoldersTest() {
    ForeignHolderInfo info;
    info.holder = {"0123456789abcdef",
                   {"u-stray"},
                   {"default", "stray"},
                   "main",
                   {{"example.com/gpu", {"0", "1"}}},
                   {"v.com/c=1"},
                   "its pod is not known"};
    info.endpoint = "/run/runtime.sock";
    info.since = now_ - minutes(5);
    node_.holders = {info};
    info.holder.container_id = "ffff";
    info.holder.pod = {"other", "p"};
    info.freed = "it hangs";
    node_.holders.push_back(info);
  }
};

TEST_F(HoldersTest, AreListed) {
  const Result all = Run({"get", "holders"});
  EXPECT_EQ(all.code, 0) << all.err;
  EXPECT_THAT(all.out,
              AllOf(HasSubstr("0123456789abc   default"), HasSubstr("5m"),
                    HasSubstr("example.com/gpu/0,example.com/gpu/1,v.com/c=1"),
                    HasSubstr("it hangs")));
  EXPECT_THAT(
      Run({"get", "holders", "-o", "wide"}).out,
      AllOf(HasSubstr("0123456789abcdef"), HasSubstr("its pod is not known"),
            HasSubstr("/run/runtime.sock")));
  EXPECT_EQ(Run({"get", "holders", "-n", "other", "-o", "name"}).out,
            "holder/ffff\n");
  const auto json =
      nlohmann::json::parse(Run({"get", "holder", "0123", "-o", "json"}).out);
  EXPECT_EQ(json.at("kind"), "Holder");
  const auto& status = json.at("status");
  EXPECT_TRUE(status.at("foreign").get<bool>());
  EXPECT_EQ(status.at("pod").at("name"), "stray");
  EXPECT_EQ(status.at("resources").at(0).at("devices").size(), 2u);
  EXPECT_EQ(status.at("cdiDevices").at(0), "v.com/c=1");
  EXPECT_FALSE(status.contains("freed"));
  EXPECT_THAT(Run({"get", "holder", "77"}).err,
              HasSubstr("no container '77' is known"));
}

/// For those who join what they know of containers with what they know of
/// devices.
TEST_F(HoldersTest, ContainersOfPodsStandAmongThem) {
  DeviceHolderInfo info;
  info.pod = {"default", "train"};
  info.pod_uid = {"u-train"};
  info.container = "main";
  info.container_id = "abcdef0123456789";
  info.state = "running";
  info.created_at = now_ - minutes(7);
  info.devices = {{"example.com/gpu",
                   {},
                   "",
                   "",
                   "GPU-1",
                   {"example.com/gpu=GPU-1"},
                   "GPU-1",
                   ""},
                  {{},
                   {"default", "c"},
                   "nic.example.com",
                   "node-1",
                   "nic-0",
                   {},
                   "",
                   "0000:3b:00.0"}};
  node_.device_holders = {info};
  info.container = "sidecar";
  info.container_id.clear();
  info.state.clear();
  info.created_at.reset();
  node_.device_holders.push_back(info);
  const Result table = Run({"get", "holders", "-n", "default"});
  EXPECT_THAT(
      table.out,
      AllOf(HasSubstr("abcdef0123456   default     train   main"),
            HasSubstr("example.com/gpu/GPU-1,nic.example.com/node-1/nic-0"),
            HasSubstr("7m"), HasSubstr("<none>")));
  EXPECT_THAT(
      Run({"get", "holders", "-o", "wide"}).out,
      AllOf(HasSubstr("u-train"), HasSubstr("running"),
            HasSubstr("0000:3b:00.0"), HasSubstr("example.com/gpu=GPU-1")));
  EXPECT_THAT(Run({"get", "holders", "-o", "name"}).out,
              AllOf(HasSubstr("holder/abcdef0123456789\n"),
                    HasSubstr("holder/default/train/sidecar\n"),
                    HasSubstr("holder/ffff\n")));
  const auto json =
      nlohmann::json::parse(Run({"get", "holder", "abc", "-o", "json"}).out);
  const auto& status = json.at("status");
  EXPECT_FALSE(status.at("foreign").get<bool>());
  EXPECT_EQ(status.at("containerID"), "abcdef0123456789");
  EXPECT_EQ(status.at("pod").at("uid"), "u-train");
  const auto& devices = status.at("devices");
  EXPECT_EQ(devices.at(0).at("resource"), "example.com/gpu");
  EXPECT_EQ(devices.at(0).at("uuid"), "GPU-1");
  EXPECT_FALSE(devices.at(0).contains("claim"));
  EXPECT_EQ(devices.at(1).at("claim").at("name"), "c");
  EXPECT_EQ(devices.at(1).at("pciAddress"), "0000:3b:00.0");
  EXPECT_EQ(Run({"get", "holders", "-o", "yaml"}).code, 0);
}

TEST_F(HoldersTest, AreFreedOnlyWhenThatIsMeant) {
  const Result shown = Run({"free", "holder", "0123", "--reason", "it hangs"});
  EXPECT_NE(shown.code, 0);
  EXPECT_THAT(shown.err,
              AllOf(HasSubstr("example.com/gpu/0"),
                    HasSubstr("its pod is not known"), HasSubstr("add --yes")));
  EXPECT_THAT(node_.decisions, IsEmpty());
  const Result done =
      Run({"free", "holder", "0123", "--reason", "it hangs", "--yes"});
  EXPECT_EQ(done.code, 0) << done.err;
  EXPECT_THAT(done.out, HasSubstr("'0123' are free for pods"));
  EXPECT_THAT(node_.decisions, ElementsAre("free holder 0123: it hangs"));
  EXPECT_THAT(Run({"free", "holder", "0123", "--yes"}).err,
              HasSubstr("--reason"));
  EXPECT_THAT(Run({"free", "holder", "--reason", "r"}).err,
              HasSubstr("the NAME of the holder is missing"));
  EXPECT_THAT(Run({"free", "pod", "p", "--reason", "r"}).err,
              HasSubstr("holder"));
  EXPECT_THAT(Run({"describe", "holder", "0123"}).err,
              HasSubstr("is not for this verb"));
}

TEST_F(OperatorTest, ConvertsALedgerOnlyWhenThatIsMeant) {
  const Result shown = Run({"--state-dir", "/s", "convert", "--to", "2"});
  EXPECT_NE(shown.code, 0);
  EXPECT_THAT(shown.err,
              AllOf(HasSubstr("would be lost: how a source is recognised"),
                    HasSubstr("add --yes")));
  const Result done =
      Run({"--state-dir", "/s", "convert", "--to", "2", "--yes"});
  EXPECT_EQ(done.code, 0) << done.err;
  EXPECT_THAT(done.out,
              AllOf(HasSubstr("has format 2 now"), HasSubstr("3 decisions")));
  EXPECT_THAT(done.err, HasSubstr("lost: how a source is recognised"));
  EXPECT_THAT(conversions_, ElementsAre("/s to 2, shown", "/s to 2"));
  EXPECT_THAT(Run({"convert", "--to", "2"}).err, HasSubstr("--state-dir DIR"));
}

TEST_F(OperatorTest, TheDaemonsRefusalIsTold) {
  node_.decided = absl::FailedPreconditionError("claim 'x' is used by a/b");
  const Result result =
      Run({"release", "claim", "x", "--force", "--reason", "r", "--yes"});
  EXPECT_EQ(result.code, 1);
  EXPECT_THAT(result.err, HasSubstr("is used by a/b"));
}

TEST_F(OperatorTest, AStoppedDaemonCannotBeTold) {
  EXPECT_THAT(Run({"--state-dir", "/s", "release", "claim", "x", "--force",
                   "--reason", "r", "--yes"})
                  .err,
              HasSubstr("release"));
  EXPECT_THAT(node_.decisions, IsEmpty());
}

}  // namespace
}  // namespace devmgr::ctl
