// SPDX-License-Identifier: Apache-2.0
#include "peer/log_fold.h"

#include <fmt/core.h>

#include <utility>

namespace devmgr::peer {

LogFold::~LogFold() {
  executor_.Cancel(timer_);
  TellFolded();
}

void LogFold::Log(LogLevel level, const std::string& subject,
                  std::string text) {
  if (!sink_) return;
  const auto now = executor_.Now();
  // With something folded the timer begins the next pause.
  if (timer_ == 0 && now >= began_ + kPause) {
    subjects_.clear();
    began_ = now;
  }
  const bool apart =
      subjects_.contains(subject) || subjects_.size() < kMaxSubjects;
  Subject& told = subjects_[apart ? subject : ""];
  if (told.lines < kMaxLines) {
    ++told.lines;
    return sink_(level, text);
  }
  ++told.folded;
  told.level = level;
  told.last = std::move(text);
  if (timer_ != 0) return;
  timer_ = executor_.PostAfter(
      std::chrono::ceil<std::chrono::milliseconds>(began_ + kPause - now),
      [this, alive = std::weak_ptr<int>(alive_)] {
        if (alive.expired()) return;
        timer_ = 0;
        TellFolded();
      });
}

void LogFold::TellFolded() {
  for (const auto& [subject, told] : std::exchange(subjects_, {})) {
    if (told.folded == 0) continue;
    sink_(told.level,
          fmt::format("{} (repeated {} times)", told.last, told.folded));
  }
  began_ = executor_.Now();
}

}  // namespace devmgr::peer
