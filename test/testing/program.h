// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "common/unique_fd.h"

namespace devmgr::testing {

/// A run of a program, with its output in pipes. Killed at the end.
class Program {
 public:
  Program(const char* path, const std::vector<std::string>& arguments) {
    int out[2];
    int err[2];
    if (::pipe2(out, O_CLOEXEC) != 0 || ::pipe2(err, O_CLOEXEC) != 0) return;
    out_ = UniqueFd(out[0]);
    err_ = UniqueFd(err[0]);
    const UniqueFd out_end(out[1]);
    const UniqueFd err_end(err[1]);
    std::vector<char*> argv = {const_cast<char*>(path)};
    for (const std::string& argument : arguments) {
      argv.push_back(const_cast<char*>(argument.c_str()));
    }
    argv.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawn_file_actions_adddup2(&actions, out[1], 1);
    ::posix_spawn_file_actions_adddup2(&actions, err[1], 2);
    if (::posix_spawn(&pid_, path, &actions, nullptr, argv.data(), environ) !=
        0) {
      pid_ = -1;
    }
    ::posix_spawn_file_actions_destroy(&actions);
  }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;
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
  static constexpr int kLimitMs = 30'000;

  static bool ReadSome(int fd, std::string* text) {
    struct pollfd waiting = {fd, POLLIN, 0};
    if (::poll(&waiting, 1, kLimitMs) <= 0) {
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

}  // namespace devmgr::testing
