// SPDX-License-Identifier: Apache-2.0
#include "session.h"

#include "text.h"

namespace devmgr::ctl {

std::chrono::milliseconds CallTimeout(const Options& options) {
  if (!options.timeout) {
    // fsck reads directories and all of the history.
    return std::chrono::seconds(options.verb == Verb::kFsck ? 30 : 2);
  }
  // No limit is a day: the wire wants a number.
  if (options.timeout->count() == 0) return std::chrono::hours(24);
  return *options.timeout;
}

absl::StatusOr<std::unique_ptr<Inspector>> Session::Open() const {
  if (!options_.offline()) {
    auto inspector =
        environment_.connect(options_.endpoint, CallTimeout(options_));
    if (inspector.status().code() == absl::StatusCode::kUnavailable) {
      return MakeError(inspector.status().code(),
                       MessageOf(inspector.status()) +
                           "; is devmgrd running? choose its socket with "
                           "--endpoint, or read a stopped one's ledger with "
                           "--state-dir");
    }
    return inspector;
  }
  auto inspector = environment_.open_state_dir(options_.state_dir);
  if (!inspector.ok()) {
    // Of the named things it is none, and no socket either.
    const absl::Status& status = inspector.status();
    if (status.code() == absl::StatusCode::kPermissionDenied) return status;
    return MakeError(absl::StatusCode::kFailedPrecondition, MessageOf(status));
  }
  Note("reading the stopped store in '" + options_.state_dir +
       "'; no daemon is asked");
  return inspector;
}

absl::StatusOr<std::unique_ptr<CdiCache>> Session::OpenCdi(bool watch) const {
  const auto& directories = options_.cdi_spec_dirs;
  CdiCacheOptions options;
  options.directories.assign(directories.begin(), directories.end());
  options.watch = watch;
  auto cache = environment_.open_cdi_dirs(options);
  if (!cache.ok() || watch) return cache;
  for (const std::string& problem : (*cache)->Registry()->unread()) {
    Note(problem);
  }
  return cache;
}

absl::StatusOr<std::unique_ptr<RuntimeInspector>> Session::OpenRuntime() const {
  return environment_.connect_runtime(options_.runtime_endpoint,
                                      CallTimeout(options_));
}

absl::Status Session::CheckOnline(const char* verb) const {
  if (!options_.offline()) return absl::OkStatus();
  return MakeError(
      absl::StatusCode::kFailedPrecondition,
      std::string(verb) + " needs a running daemon; leave --state-dir out");
}

void Session::Note(const std::string& text) const {
  err() << "devmgrctl: " << Clean(text) << "\n";
}

Table Session::MakeTable(std::vector<std::string> headers,
                         std::vector<std::size_t> min_widths) const {
  return Table(std::move(headers), options_.no_headers, color_,
               std::move(min_widths));
}

void Session::Print(Table& table) const {
  if (table.empty()) {
    err() << "No resources found\n";
    return;
  }
  table.Print(out());
}

std::string Session::Age(WallTime time) const {
  if (time.time_since_epoch().count() <= 0) return "<unknown>";
  return AgeText(std::chrono::duration_cast<std::chrono::seconds>(
      environment_.now() - time));
}

}  // namespace devmgr::ctl
