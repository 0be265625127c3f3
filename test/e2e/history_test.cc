// SPDX-License-Identifier: Apache-2.0
//
// Looking back with devmgrctl: at a running daemon and at a stopped store.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "e2e/daemon.h"

namespace devmgr {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;

class HistoryTest : public ::testing::Test {
 protected:
  /// A pod `p` became Ready and is gone again.
  void LiveAndDie() {
    node_.Write("p.yaml", ClaimManifest("c1", "u-c", {"gpu-0"}, {"u-p"}) +
                              PodManifest("p", "u-p", "c1"));
    ASSERT_EQ(Wait("ready").code, 0);
    node_.Remove("p.yaml");
    ASSERT_EQ(Wait("released").code, 0);
  }

  Exit Wait(const std::string& state) {
    return node_.Ctl(
        {"wait", "pod", "p", "--for=" + state, "--timeout", "20s"});
  }

  /// Of the running daemon, or of its store once it is stopped.
  Exit Ctl(std::vector<std::string> args) {
    if (!stopped_) return node_.Ctl(std::move(args));
    args.insert(args.end(), {"--state-dir", (node_.root() / "state").string()});
    return RunTool("devmgrctl", args);
  }

  /// The number of the last decision of that kind.
  std::uint64_t SequenceOf(const std::string& kind) {
    const json list = json::parse(Ctl({"history", "p", "-o", "json"}).out);
    std::uint64_t sequence = 0;
    for (const json& item : list["items"]) {
      if (item["kind"] == kind) sequence = item["sequence"];
    }
    EXPECT_GT(sequence, 0u) << kind;
    return sequence;
  }

  void LookBack() {
    const std::string ready = std::to_string(SequenceOf("PrepareResult"));
    const std::string last = std::to_string(SequenceOf("Release"));
    const json state =
        json::parse(Ctl({"state", "--at", ready, "-o", "json"}).out);
    ASSERT_EQ(state["pods"].size(), 1u);
    EXPECT_EQ(state["pods"][0]["status"]["state"], "Ready");
    EXPECT_EQ(state["claims"][0]["status"]["state"], "Prepared");
    EXPECT_EQ(state["devices"][0]["status"]["device"], "gpu-0");
    const Exit empty = Ctl({"state", "-o", "name"});
    EXPECT_EQ(empty.code, 0) << empty.err;
    EXPECT_EQ(empty.out, "");
    const Exit diff = Ctl({"diff", "--from", "0", "--to", ready});
    EXPECT_EQ(diff.code, 1) << diff.err;
    EXPECT_THAT(diff.out,
                AllOf(HasSubstr("+ pod/default/p"), HasSubstr("state: Ready"),
                      HasSubstr("+ claim/default/c1")));
    EXPECT_THAT(Ctl({"diff", "--from", ready}).out,
                HasSubstr("- claim/default/c1"));
    EXPECT_EQ(Ctl({"diff", "--from", "0"}).code, 0);
    EXPECT_EQ(Ctl({"state", "--at", std::to_string(std::stoi(last) + 1)}).code,
              1);
    EXPECT_EQ(Ctl({"history", "claim/u-c", "-o", "name"}).out,
              Ctl({"history", "c1", "-o", "name"}).out);
  }

  NodeFolder node_;
  bool stopped_ = false;
};

TEST_F(HistoryTest, LooksBackAtARunningDaemonAndAtItsStoppedStore) {
  const auto driver = node_.StartDriver();
  Daemon daemon(node_.root());
  ASSERT_NE(daemon.Inspect(), nullptr);
  ASSERT_NO_FATAL_FAILURE(LiveAndDie());
  ASSERT_NO_FATAL_FAILURE(LookBack());
  const std::string running = Ctl({"history", "-o", "json"}).out;
  std::chrono::milliseconds took;
  ASSERT_EQ(daemon.Terminate(&took), 0) << daemon.log();
  stopped_ = true;
  ASSERT_NO_FATAL_FAILURE(LookBack());
  EXPECT_EQ(Ctl({"history", "-o", "json"}).out, running);
}

}  // namespace
}  // namespace devmgr
