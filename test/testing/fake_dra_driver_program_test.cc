// SPDX-License-Identifier: Apache-2.0
//
// The program fake-dra-driver: flags, exit codes, events, signals.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include "common/unique_fd.h"
#include "testing/fake_driver_fixture.h"

namespace devmgr::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// A run of the program, with its output in pipes. Killed at the end.
class Program {
 public:
  explicit Program(const std::vector<std::string>& arguments) {
    int out[2];
    int err[2];
    if (::pipe2(out, O_CLOEXEC) != 0 || ::pipe2(err, O_CLOEXEC) != 0) return;
    out_ = UniqueFd(out[0]);
    err_ = UniqueFd(err[0]);
    const UniqueFd out_end(out[1]);
    const UniqueFd err_end(err[1]);
    std::vector<char*> argv = {const_cast<char*>(FAKE_DRA_DRIVER)};
    for (const std::string& argument : arguments) {
      argv.push_back(const_cast<char*>(argument.c_str()));
    }
    argv.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawn_file_actions_adddup2(&actions, out[1], 1);
    ::posix_spawn_file_actions_adddup2(&actions, err[1], 2);
    if (::posix_spawn(&pid_, FAKE_DRA_DRIVER, &actions, nullptr, argv.data(),
                      environ) != 0) {
      pid_ = -1;
    }
    ::posix_spawn_file_actions_destroy(&actions);
  }
  ~Program() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }

  /// Stops reading what it prints.
  void CloseOutput() { out_.Reset(); }

  void Signal(int number) { ::kill(pid_, number); }

  /// The next line of standard output; nothing at its end, or too late.
  std::optional<std::string> NextLine() {
    for (;;) {
      const std::size_t end = buffer_.find('\n');
      if (end != std::string::npos) {
        std::string line = buffer_.substr(0, end);
        buffer_.erase(0, end + 1);
        return line;
      }
      if (!ReadSome(out_.get(), &buffer_)) return std::nullopt;
    }
  }

  /// Skips to the next event of that kind.
  std::optional<nlohmann::json> NextEvent(const std::string& kind) {
    while (const auto line = NextLine()) {
      auto event = nlohmann::json::parse(*line, nullptr, false);
      if (event.is_object() && event.value("event", "") == kind) return event;
    }
    return std::nullopt;
  }

  /// The exit code once it has ended; minus the signal if one killed it.
  int ExitCode() {
    // Its ends of the pipes close when it ends: that is what is waited for.
    std::string rest;
    while (ReadSome(out_.get(), &rest)) {
    }
    while (ReadSome(err_.get(), &errors_)) {
    }
    int status = 0;
    if (::waitpid(pid_, &status, 0) != pid_) return -1000;
    pid_ = -1;
    out_text_ = buffer_ + rest;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }
  const std::string& output() const { return out_text_; }
  const std::string& errors() const { return errors_; }

 private:
  static bool ReadSome(int fd, std::string* text) {
    struct pollfd waiting = {fd, POLLIN, 0};
    if (::poll(&waiting, 1, static_cast<int>(kLimit.count())) <= 0) {
      return false;
    }
    char bytes[4096];
    const ssize_t got = ::read(fd, bytes, sizeof bytes);
    if (got <= 0) return false;
    text->append(bytes, static_cast<std::size_t>(got));
    return true;
  }

  pid_t pid_ = -1;
  UniqueFd out_;
  UniqueFd err_;
  std::string buffer_;
  std::string out_text_;
  std::string errors_;
};

class FakeDraDriverProgramTest : public FakeDriverFixture {
 protected:
  std::vector<std::string> Flags(std::vector<std::string> more = {}) {
    std::vector<std::string> flags = {"--name", kDriver, "--root",
                                      root_.string()};
    flags.insert(flags.end(), more.begin(), more.end());
    return flags;
  }
};

TEST_F(FakeDraDriverProgramTest, ServesUntilItIsTerminated) {
  for (const int number : {SIGTERM, SIGINT}) {
    Program program(Flags({"--pool", "p", "--devices", "2"}));
    const auto serving = program.NextEvent("serving");
    ASSERT_TRUE(serving.has_value()) << program.ExitCode() << program.errors();
    EXPECT_EQ(serving->at("pool"), "p");
    EXPECT_EQ(serving->at("devices"), 2);
    EXPECT_TRUE(GetInfo().ok());
    ASSERT_TRUE(Notify(true, "").ok());
    EXPECT_TRUE(program.NextEvent("registered").has_value());
    program.Signal(number);
    EXPECT_EQ(program.ExitCode(), 0);
    EXPECT_EQ(program.errors(), "");
    EXPECT_FALSE(std::filesystem::exists(ServiceSocket()));
    EXPECT_FALSE(std::filesystem::exists(RegistrationSocket()));
  }
}

TEST_F(FakeDraDriverProgramTest, PrintsARefusedRegistration) {
  Program program(Flags());
  ASSERT_TRUE(program.NextEvent("serving").has_value());
  ASSERT_TRUE(Notify(false, "not you").ok());
  const auto refused = program.NextEvent("registration-refused");
  ASSERT_TRUE(refused.has_value());
  EXPECT_EQ(refused->at("error"), "not you");
}

TEST_F(FakeDraDriverProgramTest, OffersTheServicesInTheOrderGiven) {
  Program program(Flags({"--api", "v1beta1,v1"}));
  ASSERT_TRUE(program.NextEvent("serving").has_value());
  EXPECT_THAT(GetInfo()->supported_versions(),
              ElementsAre("v1beta1.DRAPlugin", "v1.DRAPlugin"));
}

TEST_F(FakeDraDriverProgramTest, HelpListsTheFlags) {
  Program program({"--help"});
  EXPECT_EQ(program.ExitCode(), 0);
  for (const char* flag :
       {"--name", "--root", "--api", "--pool", "--devices", "--scenario"}) {
    EXPECT_THAT(program.output(), HasSubstr(flag));
  }
}

TEST_F(FakeDraDriverProgramTest, WrongUseEndsWithTwo) {
  for (const auto& flags : std::vector<std::vector<std::string>>{
           {},
           {"--name", "a"},
           Flags({"--api", "v7"}),
           Flags({"--devices", "-1"}),
           Flags({"--frobnicate"}),
           {"--name", "a/b", "--root", root_.string()}}) {
    Program program(flags);
    EXPECT_EQ(program.ExitCode(), 2);
    EXPECT_NE(program.errors(), "");
    EXPECT_EQ(program.output(), "");
  }
}

TEST_F(FakeDraDriverProgramTest, AScenarioWithAMistakeIsNamedByLine) {
  const auto file = root_ / "scenario.yaml";
  std::ofstream(file) << "steps:\n- {action: explode}\n";
  Program program(Flags({"--scenario", file.string()}));
  EXPECT_EQ(program.ExitCode(), 2);
  EXPECT_THAT(program.errors(), HasSubstr("scenario.yaml:2"));
}

TEST_F(FakeDraDriverProgramTest, ASecondOneEndsWithOne) {
  Program first(Flags());
  ASSERT_TRUE(first.NextEvent("serving").has_value());
  Program second(Flags());
  EXPECT_EQ(second.ExitCode(), 1);
  EXPECT_THAT(second.errors(), HasSubstr("dra.sock"));
  EXPECT_TRUE(GetInfo().ok());
}

TEST_F(FakeDraDriverProgramTest, CrashesWhereTheScenarioSays) {
  const auto file = root_ / "scenario.yaml";
  std::ofstream(file) << "steps:\n- {action: crash-after, method: prepare}\n";
  WriteClaim("c1", "uid-1", {{}});
  {
    Program program(Flags({"--scenario", file.string()}));
    ASSERT_TRUE(program.NextEvent("serving").has_value());
    EXPECT_FALSE(Prepare({{"c1", "uid-1"}}).ok());
    EXPECT_EQ(program.ExitCode(), 137);
  }
  // Sockets and files of the dead process are there; the next one copes.
  EXPECT_TRUE(std::filesystem::exists(ServiceSocket()));
  EXPECT_THAT(FilesIn("cdi"), ElementsAre("gpu.example.com-uid-1.json"));
  RemoveManifest("c1");
  Program program(Flags());
  ASSERT_TRUE(program.NextEvent("serving").has_value());
  HangUp();
  ASSERT_TRUE(Unprepare({{"c1", "uid-1"}}).ok());
  EXPECT_THAT(FilesIn("cdi"), IsEmpty());
}

TEST_F(FakeDraDriverProgramTest, SurvivesAReaderThatLeaves) {
  WriteClaim("c1", "uid-1", {{}});
  Program program(Flags());
  ASSERT_TRUE(program.NextEvent("serving").has_value());
  program.CloseOutput();
  EXPECT_TRUE(Prepare({{"c1", "uid-1"}}).ok());
  EXPECT_TRUE(Prepare({{"c1", "uid-1"}}).ok());
}

}  // namespace
}  // namespace devmgr::testing
