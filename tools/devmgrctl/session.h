// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <absl/status/statusor.h>

#include <memory>
#include <string>
#include <vector>

#include "options.h"
#include "output.h"

namespace devmgr::ctl {

/// One run of a verb: its options, the world, and whom to ask.
class Session {
 public:
  Session(const Options& options, const Environment& environment)
      : options_(options),
        environment_(environment),
        color_(WantsColor(options, environment)) {}

  const Options& options() const { return options_; }
  const Environment& environment() const { return environment_; }
  std::ostream& out() const { return environment_.out; }
  std::ostream& err() const { return environment_.err; }
  bool color() const { return color_; }
  bool wide() const { return options_.format == Format::kWide; }
  /// True for the formats that programs read.
  bool is_document() const {
    return options_.format == Format::kJson || options_.format == Format::kYaml;
  }

  /// Connects, or reads the state directory (a note on stderr says so).
  absl::StatusOr<std::unique_ptr<Inspector>> Open() const;

  /// Reads the CDI directories of the options; a note on stderr tells of each
  /// that cannot be read. `watch`: as of CdiCacheOptions, and tells nothing.
  absl::StatusOr<std::unique_ptr<CdiCache>> OpenCdi(bool watch = false) const;

  /// Connects to the runtime of the options.
  absl::StatusOr<std::unique_ptr<RuntimeInspector>> OpenRuntime() const;

  /// FailedPrecondition when the state directory is to be read.
  absl::Status CheckOnline(const char* verb) const;

  /// A line on stderr.
  void Note(const std::string& text) const;

  Table MakeTable(std::vector<std::string> headers,
                  std::vector<std::size_t> min_widths = {}) const;
  /// Prints the table, or says on stderr that there is nothing.
  void Print(Table& table) const;

  /// How long ago; `<unknown>` for a time that was never set.
  std::string Age(WallTime time) const;

 private:
  const Options& options_;
  const Environment& environment_;
  const bool color_;
};

/// How long one answer may take: the flag, else 2 s (30 s for fsck).
std::chrono::milliseconds CallTimeout(const Options& options);

}  // namespace devmgr::ctl
