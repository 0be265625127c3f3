// SPDX-License-Identifier: Apache-2.0
//
// A CEL selector, evaluated on the devices of ResourceSlices in files. No
// daemon is asked.
#include <devmgr/cel.h>
#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "commands.h"
#include "listing.h"
#include "manifest_files.h"
#include "text.h"

namespace devmgr::ctl {

// Where lists look for ItemOf.
/// A device and what the selector says of it.
struct JudgedDevice {
  std::string driver;
  std::string pool;
  std::string device;
  std::string slice;
  std::string file;
  CelVerdict verdict;

  std::string Name() const { return driver + "/" + pool + "/" + device; }
  bool Matches() const { return verdict.matches.ok() && *verdict.matches; }
};

Json ItemOf(const JudgedDevice& judged) {
  Json item = {{"driver", judged.driver},
               {"pool", judged.pool},
               {"device", judged.device},
               {"slice", judged.slice},
               {"file", judged.file}};
  if (judged.verdict.matches.ok()) item["matches"] = *judged.verdict.matches;
  item["cost"] = judged.verdict.cost;
  if (!judged.verdict.matches.ok()) {
    item["error"] = MessageOf(judged.verdict.matches.status());
  }
  return item;
}

namespace {

Row ShownVerdict(const Session&, const JudgedDevice& judged) {
  const bool failed = !judged.verdict.matches.ok();
  const Cell result = failed             ? Cell("error", Tone::kBad)
                      : judged.Matches() ? Cell("yes", Tone::kGood)
                                         : Cell("no");
  return {judged.Name(), result, fmt::format("{}", judged.verdict.cost),
          failed ? MessageOf(judged.verdict.matches.status()) : "-"};
}

const Listing<JudgedDevice> kJudgedDevices = {
    "CelEvaluation",
    nullptr,
    {"DEVICE", "MATCHES", "COST", "ERROR"},
    {"SLICE", "FILE"},
    [](const JudgedDevice& judged) {
      return std::vector<std::string>{judged.driver, judged.pool,
                                      judged.device};
    },
    [](const JudgedDevice& judged) {
      return judged.Matches() ? judged.Name() : std::string();
    },
    ShownVerdict,
    [](const Session&, const JudgedDevice& judged) {
      return Row{judged.slice, judged.file};
    }};

/// The slices of one file. What is wrong with it, or was skipped, is noted.
absl::StatusOr<std::vector<ResourceSlice>> ReadSlices(const Session& session,
                                                      const std::string& path) {
  auto manifest = ReadManifest(session, path);
  if (!manifest.ok()) return manifest.status();
  std::vector<ResourceSlice> slices;
  for (DecodedObject& object : manifest->objects) {
    if (auto* slice = std::get_if<ResourceSlice>(&object.object)) {
      slices.push_back(std::move(*slice));
    }
  }
  if (slices.empty()) {
    session.Note(fmt::format("'{}' has no ResourceSlice", path));
  }
  return slices;
}

struct SliceFile {
  std::string path;
  std::vector<ResourceSlice> slices;
};

absl::StatusOr<std::vector<SliceFile>> ReadFiles(const Session& session) {
  std::vector<SliceFile> files;
  for (const std::string& path : session.options().slices) {
    auto slices = ReadSlices(session, path);
    if (!slices.ok()) return slices.status();
    files.push_back({path, *std::move(slices)});
  }
  return files;
}

/// NotFound when no slice is of the driver that was asked for.
absl::Status CheckDriver(const std::string& driver,
                         const std::vector<SliceFile>& files) {
  if (driver.empty()) return absl::OkStatus();
  std::set<std::string> drivers;
  for (const SliceFile& file : files) {
    for (const ResourceSlice& slice : file.slices) drivers.insert(slice.driver);
  }
  if (drivers.contains(driver)) return absl::OkStatus();
  return MakeError(
      absl::StatusCode::kNotFound,
      fmt::format("no slice is of driver '{}'; the files have slices of: {}",
                  driver, drivers.empty() ? "none" : Join(drivers, ", ")));
}

CelVariables VariablesOf(const Options& options) {
  return options.old_variables ? CelVariables::kV1alpha2
                               : CelVariables::kDevice;
}

std::vector<JudgedDevice> JudgeAll(const CelSelector& selector,
                                   const Options& options,
                                   const std::vector<SliceFile>& files) {
  std::vector<JudgedDevice> judged;
  for (const SliceFile& file : files) {
    for (const ResourceSlice& slice : file.slices) {
      if (!options.driver.empty() && slice.driver != options.driver) continue;
      for (const SliceDevice& device : slice.devices) {
        judged.push_back({slice.driver, slice.pool, device.name,
                          slice.metadata.name, file.path,
                          selector.Evaluate(CelDevice(slice.driver, device,
                                                      VariablesOf(options)))});
      }
    }
  }
  return judged;
}

std::string WorstCostText(std::uint64_t cost, const Options& options) {
  const std::string amount = cost == std::numeric_limits<std::uint64_t>::max()
                                 ? std::string("unbounded")
                                 : fmt::format("{}", cost);
  return fmt::format("{} of {}{}", amount, kCelCostLimit,
                     cost > kCelCostLimit && !options.old_variables
                         ? ": an API server refuses new objects with it"
                         : "");
}

Json Document(const Options& options, const CelSelector& selector,
              const std::vector<JudgedDevice>& judged) {
  Json head = {{"expression", options.expression},
               {"costLimit", kCelCostLimit}};
  if (selector.worst_cost() != std::numeric_limits<std::uint64_t>::max()) {
    head["worstCost"] = selector.worst_cost();
  }
  head["items"] = Json::array();
  for (const JudgedDevice& device : judged) {
    head["items"].push_back(ItemOf(device));
  }
  return DocumentOf(kJudgedDevices.list_kind, head);
}

void Print(const Session& session, const CelSelector& selector,
           std::vector<JudgedDevice> judged) {
  const Options& options = session.options();
  SortBy(kJudgedDevices, judged);
  if (session.is_document()) {
    PrintDocument(session.out(), Document(options, selector, judged),
                  options.format);
    return;
  }
  if (options.format != Format::kName && !options.no_headers) {
    const auto matching = std::count_if(
        judged.begin(), judged.end(),
        [](const JudgedDevice& device) { return device.Matches(); });
    Fields fields(session.color());
    fields.Add("Worst cost", WorstCostText(selector.worst_cost(), options));
    fields.Add("Matching",
               fmt::format("{} of {} devices", matching, judged.size()));
    fields.Print(session.out());
    session.out() << "\n";
  }
  PrintLines(session, judged, kJudgedDevices);
}

/// Prints where the expression is wrong, and returns that it is.
absl::Status Refuse(const Session& session, const CelProblem& problem) {
  const Options& options = session.options();
  if (session.is_document()) {
    Json shown = {{"message", problem.message}};
    if (problem.line > 0) {
      shown["line"] = problem.line;
      shown["column"] = problem.column;
    }
    PrintDocument(
        session.out(),
        DocumentOf(kJudgedDevices.list_kind,
                   {{"expression", options.expression}, {"problem", shown}}),
        options.format);
  }
  session.err() << problem.ToString() << "\n";
  return MakeError(absl::StatusCode::kInvalidArgument,
                   "the expression does not compile");
}

}  // namespace

absl::Status Cel(const Session& session) {
  const Options& options = session.options();
  CelProblem problem;
  const auto selector =
      CelSelector::Compile(options.expression, &problem, VariablesOf(options));
  if (!selector.ok()) return Refuse(session, problem);
  const auto files = ReadFiles(session);
  if (!files.ok()) return AsTrouble(files.status());
  absl::Status status = CheckDriver(options.driver, *files);
  if (!status.ok()) return status;
  std::vector<JudgedDevice> judged = JudgeAll(*selector, options, *files);
  const auto failed = std::count_if(
      judged.begin(), judged.end(),
      [](const JudgedDevice& device) { return !device.verdict.matches.ok(); });
  const std::size_t count = judged.size();
  Print(session, *selector, std::move(judged));
  if (failed == 0) return absl::OkStatus();
  return MakeError(absl::StatusCode::kInvalidArgument,
                   fmt::format("the expression fails on {} of {} device{}; a "
                               "pod with it is refused",
                               failed, count, count == 1 ? "" : "s"));
}

}  // namespace devmgr::ctl
