// SPDX-License-Identifier: Apache-2.0
//
// Changes of devices as a program reads them: devmgrctl as a child that follows
// them over ends of the daemon, and tokens that go on, or are too old.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <nlohmann/json.hpp>

#include "common/unique_fd.h"
#include "e2e/build_dirs.h"
#include "e2e/daemon.h"
#include "support/mailbox.h"

namespace devmgr {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr char kTpu[] = "example.com/tpu";

std::string PodYaml(const std::string& name) {
  return "apiVersion: v1\nkind: Pod\nmetadata: {name: " + name + ", uid: u-" +
         name +
         "}\nspec:\n  containers:\n  - name: c\n    resources: {limits: {" +
         kTpu + ": \"1\"}}\n";
}

/// `devmgrctl get changes -f -o json`, as a program that reads its lines.
class Follower {
 public:
  Follower(const std::filesystem::path& root, std::vector<std::string> more) {
    int ends[2];
    EXPECT_EQ(::pipe(ends), 0);
    read_ = UniqueFd(ends[0]);
    const UniqueFd write(ends[1]);
    std::vector<std::string> args = {
        std::string(DEVMGR_TOOLS_DIR) + "/devmgrctl/devmgrctl",
        "--endpoint",
        (root / "devmgr.sock").string(),
        "get",
        "changes",
        "-f",
        "-o",
        "json"};
    args.insert(args.end(), more.begin(), more.end());
    std::vector<char*> argv;
    for (std::string& arg : args) argv.push_back(arg.data());
    argv.push_back(nullptr);
    pid_ = ::fork();
    if (pid_ != 0) return;
    ::dup2(write.get(), STDOUT_FILENO);
    ::execv(argv[0], argv.data());
    ::_exit(127);
  }
  Follower(const Follower&) = delete;
  Follower& operator=(const Follower&) = delete;
  ~Follower() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }

  /// Changes of pods up to the one that is `wanted`, as `ADDED p`.
  std::vector<std::string> ReadTo(const std::string& wanted) {
    std::vector<std::string> seen;
    const auto deadline = std::chrono::steady_clock::now() + kPatience;
    for (;;) {
      for (std::size_t end; (end = text_.find('\n')) != std::string::npos;) {
        const json line = json::parse(text_.substr(0, end), nullptr, false);
        text_.erase(0, end + 1);
        EXPECT_FALSE(line.is_discarded());
        if (line.is_discarded()) return seen;
        const json& change = line["object"];
        token_ = change.value("token", "");
        if (!change.contains("pod")) continue;
        seen.push_back(line.value("type", "") + " " +
                       change["pod"].value("name", ""));
        if (seen.back() == wanted) return seen;
      }
      if (!ReadMore(deadline)) break;
    }
    ADD_FAILURE() << "no " << wanted << " among "
                  << ::testing::PrintToString(seen);
    return seen;
  }

  /// Of the last change that was read.
  const std::string& token() const { return token_; }

 private:
  bool ReadMore(std::chrono::steady_clock::time_point deadline) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        deadline - std::chrono::steady_clock::now());
    pollfd event{read_.get(), POLLIN, 0};
    if (left.count() <= 0 ||
        ::poll(&event, 1, static_cast<int>(left.count())) <= 0) {
      return false;
    }
    char buffer[4096];
    const ssize_t got = ::read(read_.get(), buffer, sizeof buffer);
    if (got <= 0) return false;
    text_.append(buffer, static_cast<std::size_t>(got));
    return true;
  }

  UniqueFd read_;
  pid_t pid_ = -1;
  std::string text_;
  std::string token_;
};

class ChangesTest : public ::testing::Test {
 protected:
  ChangesTest() {
    testing::FakeDevicePluginOptions options;
    options.resource = kTpu;
    options.devices = 4;
    plugin_ = node_.StartPlugin(options);
  }

  void Have(const std::string& pod) {
    node_.Write(pod + ".yaml", PodYaml(pod));
    const Exit exit =
        node_.Ctl({"wait", "pod", pod, "--for=ready", "--timeout", "20s"});
    ASSERT_EQ(exit.code, 0) << exit.err;
  }
  void Lose(const std::string& pod) {
    node_.Remove(pod + ".yaml");
    const Exit exit =
        node_.Ctl({"wait", "pod", pod, "--for=released", "--timeout", "20s"});
    ASSERT_EQ(exit.code, 0) << exit.err;
  }

  NodeFolder node_;
  std::unique_ptr<testing::FakeDevicePlugin> plugin_;
};

TEST_F(ChangesTest, AFollowerMissesNothingOverEndsOfTheDaemon) {
  auto daemon = std::make_unique<Daemon>(node_.root());
  ASSERT_NE(daemon->Inspect(), nullptr);
  ASSERT_NO_FATAL_FAILURE(Have("p"));
  Follower follower(node_.root(), {});
  EXPECT_THAT(follower.ReadTo("ADDED p"), ElementsAre("ADDED p"));
  ASSERT_NO_FATAL_FAILURE(Have("q"));
  EXPECT_THAT(follower.ReadTo("ADDED q"), ElementsAre("ADDED q"));
  const std::string token = follower.token();

  daemon->Kill();
  daemon = std::make_unique<Daemon>(node_.root());
  ASSERT_NE(daemon->Inspect(), nullptr);
  ASSERT_NO_FATAL_FAILURE(Lose("p"));
  ASSERT_NO_FATAL_FAILURE(Have("r"));
  EXPECT_THAT(follower.ReadTo("ADDED r"), ElementsAre("DELETED p", "ADDED r"));

  // A reader that was away meanwhile: the same, and each once.
  Follower late(node_.root(), {"--after", token});
  EXPECT_THAT(late.ReadTo("ADDED r"), ElementsAre("DELETED p", "ADDED r"));
  std::chrono::milliseconds took;
  ASSERT_EQ(daemon->Terminate(&took), 0) << daemon->log();
  daemon = std::make_unique<Daemon>(node_.root());
  ASSERT_NE(daemon->Inspect(), nullptr);
  ASSERT_NO_FATAL_FAILURE(Lose("q"));
  EXPECT_THAT(late.ReadTo("DELETED q"), ElementsAre("DELETED q"));
  EXPECT_THAT(follower.ReadTo("DELETED q"), ElementsAre("DELETED q"));
}

TEST_F(ChangesTest, ATokenThatIsTooOldIsRefusedWithTheWayOut) {
  auto daemon = std::make_unique<Daemon>(node_.root());
  ASSERT_NE(daemon->Inspect(), nullptr);
  ASSERT_NO_FATAL_FAILURE(Have("p"));
  const auto after = [&](const std::string& token) {
    return node_.Ctl({"get", "changes", "-f", "-o", "json", "--after", token});
  };
  const Exit of_another = after("99999");
  EXPECT_EQ(of_another.code, 1);
  EXPECT_THAT(of_another.err, HasSubstr("of another ledger"));
  EXPECT_THAT(of_another.out, IsEmpty());

  // The history ends with a conversion.
  std::chrono::milliseconds took;
  ASSERT_EQ(daemon->Terminate(&took), 0) << daemon->log();
  const Exit converted =
      RunTool("devmgrctl", {"--state-dir", (node_.root() / "state").string(),
                            "convert", "--to", "2", "--yes"});
  ASSERT_EQ(converted.code, 0) << converted.err;
  daemon = std::make_unique<Daemon>(node_.root());
  ASSERT_NE(daemon->Inspect(), nullptr);
  const Exit too_old = after("1");
  EXPECT_EQ(too_old.code, 1);
  EXPECT_THAT(too_old.err, HasSubstr("too old"));
  EXPECT_THAT(too_old.out, IsEmpty());
  // From what holds now it goes on.
  Follower follower(node_.root(), {});
  EXPECT_THAT(follower.ReadTo("ADDED p"), ElementsAre("ADDED p"));
  ASSERT_NO_FATAL_FAILURE(Lose("p"));
  EXPECT_THAT(follower.ReadTo("DELETED p"), ElementsAre("DELETED p"));
}

}  // namespace
}  // namespace devmgr
