// SPDX-License-Identifier: Apache-2.0
//
// What the benchmarks share: flags, rows of results, samples, the bare things
// that our own are held against, and stores full of pods.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <devmgr/objects.h>

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "common/mutex.h"
#include "common/unique_fd.h"
#include "state/decision.h"

namespace devmgr::bench {

/// One figure beside the limit that was measured in the same run.
struct Row {
  std::string name;
  std::string unit;
  double value = 0;
  std::optional<double> limit;  ///< In the same unit.
  std::string limit_is;         ///< For people: what the limit does.
  std::optional<double> goal;   ///< The most that `value` may be.
};

/// The rows of one program. Prints each as it comes and leaves all of them as
/// JSON where the command line says.
class Report {
 public:
  /// Takes `--brief` and `--json FILE`; ends the process on anything else.
  Report(int argc, char** argv);
  ~Report();
  Report(const Report&) = delete;
  Report& operator=(const Report&) = delete;

  /// True when it only has to be shown that everything runs.
  bool brief() const { return brief_; }
  void Add(const Row& row);

 private:
  bool brief_ = false;
  std::string file_;
  std::vector<Row> rows_;
};

/// Ends the program: nothing was measured.
[[noreturn]] void Fail(const std::string& why);
void Must(const absl::Status& status);
template <typename T>
T Must(absl::StatusOr<T> result) {
  Must(result.status());
  return *std::move(result);
}

/// Values of one figure.
class Samples {
 public:
  void Reserve(std::size_t count) { values_.reserve(count); }
  void Add(double value) { values_.push_back(value); }
  double Median() const { return Quantile(0.5); }
  double Quantile(double q) const;
  double Max() const { return Quantile(1); }

 private:
  std::vector<double> values_;
};

/// Rounds of a measurement: so many, but not for longer than `limit`.
class Rounds {
 public:
  Rounds(int count, std::chrono::seconds limit)
      : left_(count), end_(std::chrono::steady_clock::now() + limit) {}
  bool Next() { return left_-- > 0 && std::chrono::steady_clock::now() < end_; }

 private:
  int left_;
  const std::chrono::steady_clock::time_point end_;
};

/// How long something may take that takes no time.
inline constexpr std::chrono::seconds kPatience{30};

/// Ends the program when `condition` does not come true; `what` says so.
template <typename Condition>
void WaitUntil(const char* what, Condition condition) {
  const auto end = std::chrono::steady_clock::now() + kPatience;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) Fail(what);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

/// How long `work` takes, in microseconds.
template <typename Work>
double Microseconds(Work work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double, std::micro>(
             std::chrono::steady_clock::now() - begin)
      .count();
}

/// The disk at its barest: one append and fdatasync, about as long as the
/// record of a decision.
class RawLog {
 public:
  explicit RawLog(const std::filesystem::path& folder);
  void AppendAndSync();

 private:
  UniqueFd file_;
};

/// A thread that work is handed to, at its barest.
class Helper {
 public:
  Helper();
  ~Helper();
  /// Runs `work` there and waits: two hand-overs.
  void Run(const std::function<void()>& work);

 private:
  void Loop();

  Mutex mutex_;
  CondVar changed_;
  const std::function<void()>* work_ DEVMGR_GUARDED_BY(mutex_) = nullptr;
  bool stopping_ DEVMGR_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

/// Pods as the benchmarks have them: Ready in boot `kBoot`, three containers,
/// each claim with one device of one driver.
inline constexpr char kBoot[] = "boot-1";
PodUid UidOfPod(int number);
state::PutPod ReadyPod(int number, int claims);
state::PutClaim PreparedClaim(int pod, int number);

/// Fills a ledger with such pods. One batch for each claim, as they come about
/// in life, so that the history is as full as it gets.
void FillLedger(const std::filesystem::path& state_dir, int pods, int claims);

/// `default/<name>` with the UID `uid-of-<name>`; its container is `main`.
Pod PodOfOneContainer(const std::string& name);
/// The same with a device of `kResource`.
inline constexpr char kResource[] = "example.com/gpu";
Pod PodWithDevice(const std::string& name);
/// The same with a claim of its name, which `ClaimOf` has, of one device.
Pod PodWithClaim(const std::string& name);
ResourceClaim ClaimOf(const Pod& pod, const std::string& driver);

}  // namespace devmgr::bench
