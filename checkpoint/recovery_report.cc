// SPDX-License-Identifier: Apache-2.0
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <ctime>

#include "checkpoint/ledger_store.h"
#include "common/counted.h"

namespace devmgr::checkpoint {
namespace {

std::string LastBatch(const RecoveryReport& report) {
  std::string text = fmt::format("batch {}", report.last_batch);
  if (report.last_time_ms != 0) {
    text += fmt::format(
        " of {:%Y-%m-%dT%H:%M:%SZ}",
        fmt::gmtime(static_cast<std::time_t>(report.last_time_ms / 1000)));
  }
  return text;
}

}  // namespace

std::string Describe(const RecoveryReport& report) {
  if (!report.damage.empty()) {
    std::string text =
        fmt::format("the ledger was damaged and is recovered to {}: {} skipped",
                    LastBatch(report), Counted(report.skipped, "record"));
    if (!report.skipped_records.empty()) {
      text += fmt::format(" ({})", fmt::join(report.skipped_records, "; "));
    }
    return text + fmt::format(
                      ", {} mended; the damaged database is kept in "
                      "'{}'; damage: {}",
                      report.mended, report.kept.string(), report.damage);
  }
  if (report.closed_cleanly && report.last_batch == 0) {
    return "the ledger is empty";
  }
  if (report.closed_cleanly) {
    return fmt::format("the ledger was closed cleanly at {}",
                       LastBatch(report));
  }
  std::string text = fmt::format(
      "the ledger was not closed cleanly; recovered to {}", LastBatch(report));
  if (!report.dropped.empty()) {
    text += fmt::format("; dropped {}", fmt::join(report.dropped, ", "));
  }
  return text;
}

RecoveryInfo RecoveryInfoOf(const RecoveryReport& report) {
  RecoveryInfo info;
  info.closed_cleanly = report.closed_cleanly;
  info.damaged = !report.damage.empty();
  info.last_sequence = report.last_batch;
  info.dropped = report.dropped;
  info.skipped = report.skipped;
  info.skipped_records = report.skipped_records;
  info.kept = report.kept.string();
  info.message = Describe(report);
  return info;
}

}  // namespace devmgr::checkpoint
