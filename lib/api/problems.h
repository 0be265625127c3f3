// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <devmgr/manifests.h>

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace devmgr::api {

/// Listed per file; more are only counted.
inline constexpr std::size_t kMaxProblems = 100;

class ExpressionChecker;

/// Collects what is wrong with one file. Thread-bound.
class Problems {
 public:
  /// `checker` is borrowed; null: expressions are not checked.
  explicit Problems(std::string_view file, ExpressionChecker* checker = nullptr)
      : file_(file), checker_(checker) {}

  void Error(int line, std::string_view field, std::string_view message,
             std::string_view excerpt = {});
  void Warn(int line, std::string_view field, std::string_view message,
            std::string_view excerpt = {});

  ExpressionChecker* checker() const { return checker_; }

  /// A problem of this file, listed nowhere. Texts are made readable and cut.
  ManifestProblem Make(int line, std::string_view field,
                       std::string_view message) const;

  std::size_t error_count() const { return errors_.count; }

  /// By line; a last entry tells how many were left out.
  std::vector<ManifestProblem> TakeErrors() { return Take(errors_); }
  std::vector<ManifestProblem> TakeWarnings() { return Take(warnings_); }

 private:
  struct List {
    std::vector<ManifestProblem> listed;
    std::size_t count = 0;
  };

  void Add(List& list, int line, std::string_view field,
           std::string_view message, std::string_view excerpt);
  std::vector<ManifestProblem> Take(List& list) const;

  std::string file_;
  ExpressionChecker* checker_;
  List errors_;
  List warnings_;
};

}  // namespace devmgr::api
