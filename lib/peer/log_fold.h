// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <devmgr/host.h>

#include <chrono>
#include <cstddef>
#include <map>
#include <memory>
#include <string>

#include "common/executor.h"

namespace devmgr::peer {

/// Log lines about peers, at a bounded rate whatever they do: of each subject
/// some lines in ten seconds are written at once, and what comes beyond that is
/// reported with the last of it at the end of that time, as `(repeated N
/// times)`. Subjects beyond a number count as one. Lives on its executor.
class LogFold {
 public:
  static constexpr std::chrono::milliseconds kPause{10'000};
  static constexpr int kMaxLines = 6;              ///< Of one subject.
  static constexpr std::size_t kMaxSubjects = 16;  ///< Told apart in a pause.

  /// `executor` is borrowed. `sink` may be null.
  LogFold(Executor& executor, LogSink sink)
      : executor_(executor), sink_(std::move(sink)) {}
  /// What has not been reported is reported.
  ~LogFold();
  LogFold(const LogFold&) = delete;
  LogFold& operator=(const LogFold&) = delete;

  /// `subject` is what the line is about, such as a socket's name.
  void Log(LogLevel level, const std::string& subject, std::string text);

 private:
  struct Subject {
    int lines = 0;   ///< Written in this pause.
    int folded = 0;  ///< Not written.
    LogLevel level = LogLevel::kInfo;
    std::string last;  ///< Of those.
  };

  void TellFolded();

  Executor& executor_;
  const LogSink sink_;
  std::map<std::string, Subject> subjects_;
  std::chrono::steady_clock::time_point began_{};  ///< The pause.
  TimerId timer_ = 0;
  std::shared_ptr<int> alive_ = std::make_shared<int>(0);
};

}  // namespace devmgr::peer
