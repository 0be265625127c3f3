// SPDX-License-Identifier: Apache-2.0
//
// get slices, describe slice, delete slices, endpoint kubeconfig: what drivers
// publish, and how they come to.
#include "slices.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <utility>

#include "commands.h"
#include "listing.h"
#include "objects.h"
#include "sections.h"
#include "text.h"

namespace devmgr::ctl {
namespace {

constexpr char kSliceKind[] = "Slice";

std::string OfPool(const SliceInfo& slice) {
  return slice.pool_slices == 0
             ? fmt::format("{}", slice.known_slices)
             : fmt::format("{}/{}", slice.known_slices, slice.pool_slices);
}

std::vector<std::string> KeyOf(const SliceInfo& slice) {
  return {slice.driver, slice.pool, slice.name};
}

const Listing<SliceInfo> kSlices = {
    "SliceList",
    "slice",
    {"NAME", "DRIVER", "POOL", "GENERATION", "DEVICES", "SOURCE", "STATE"},
    {"NODE", "SLICES OF POOL", "WHY"},
    KeyOf,
    [](const SliceInfo& slice) { return slice.name; },
    [](const Session&, const SliceInfo& slice) {
      const std::string state = SliceStateOf(slice);
      return Row{slice.name,
                 slice.driver,
                 slice.pool,
                 fmt::format("{}", slice.generation),
                 fmt::format("{}", slice.devices.size()),
                 slice.origin,
                 {state, state == "Complete" ? Tone::kGood : Tone::kWarn}};
    },
    [](const Session&, const SliceInfo& slice) {
      return Row{slice.node, OfPool(slice), WhyOf(slice)};
    }};

absl::StatusOr<SliceInfo> FindSlice(Inspector& inspector,
                                    const std::string& name) {
  const auto slices = inspector.Slices();
  if (!slices.ok()) return slices.status();
  for (const SliceInfo& slice : *slices) {
    if (slice.name == name) return slice;
  }
  return MakeError(
      absl::StatusCode::kNotFound,
      fmt::format("slice '{}' is not known, neither from manifests nor "
                  "published by a driver",
                  name));
}

/// Which pods hold the devices of a slice.
Table DeviceTable(const Session& session, const SliceInfo& slice,
                  const std::vector<DeviceInfo>& devices) {
  std::map<std::string, std::vector<std::string>> used_by;
  for (const DeviceInfo& device : devices) {
    if (device.driver == slice.driver && device.pool == slice.pool) {
      used_by[device.device] = device.used_by;
    }
  }
  Table table = session.MakeTable({"DEVICE", "USED BY"});
  for (const std::string& name : slice.devices) {
    table.Add({name, Join(used_by[name], ",")});
  }
  return table;
}

}  // namespace

std::string SliceStateOf(const SliceInfo& slice) {
  if (slice.obsolete) return "Obsolete";
  if (!slice.complete) return "Incomplete";
  if (!slice.problem.empty()) return "Invalid";
  return slice.hidden ? "Hidden" : "Complete";
}

std::string WhyOf(const SliceInfo& slice) {
  if (slice.obsolete) return "the pool has a newer generation";
  if (!slice.complete) {
    return fmt::format("{} of {} slices of the pool are there",
                       slice.known_slices, slice.pool_slices);
  }
  if (!slice.problem.empty()) {
    return "the slices of the pool contradict each other: " + slice.problem;
  }
  return slice.hidden
             ? fmt::format("driver '{}' is not registered", slice.driver)
             : "";
}

absl::Status GetSlices(const Session& session, Inspector& inspector) {
  const std::string& name = session.options().name.name;
  if (name.empty()) {
    auto slices = inspector.Slices();
    if (!slices.ok()) return slices.status();
    return List(session, *std::move(slices), kSlices);
  }
  const auto slice = FindSlice(inspector, name);
  if (!slice.ok()) return slice.status();
  if (!session.is_document()) {
    return List(session, std::vector<SliceInfo>{*slice}, kSlices);
  }
  PrintDocument(session.out(), DocumentOf(kSliceKind, ItemOf(*slice)),
                session.options().format);
  return absl::OkStatus();
}

absl::Status DescribeSlice(const Session& session, Inspector& inspector) {
  const auto slice = FindSlice(inspector, session.options().name.name);
  if (!slice.ok()) return slice.status();
  if (session.is_document()) {
    PrintDocument(session.out(), DocumentOf(kSliceKind, ItemOf(*slice)),
                  session.options().format);
    return absl::OkStatus();
  }
  if (session.options().format == Format::kName) {
    session.out() << "slice/" << Clean(slice->name) << "\n";
    return absl::OkStatus();
  }
  const auto devices = inspector.Devices();
  if (!devices.ok()) return devices.status();
  Fields fields(session.color());
  fields.Add("Name", slice->name);
  fields.Add("Driver", slice->driver);
  fields.Add("Pool", slice->pool);
  fields.Add("Generation", fmt::format("{}", slice->generation));
  fields.Add("Slices of pool", OfPool(*slice));
  fields.Add("Node", slice->node);
  fields.Add("Source", slice->origin);
  const std::string state = SliceStateOf(*slice);
  fields.Add("State", {state, state == "Complete" ? Tone::kGood : Tone::kWarn});
  if (const std::string why = WhyOf(*slice); !why.empty()) {
    fields.Add("Why", why);
  }
  fields.Print(session.out());
  PrintSection(session, DeviceTable(session, *slice, *devices));
  return absl::OkStatus();
}

absl::Status DeleteSlices(const Session& session) {
  const Options& options = session.options();
  if (absl::Status status = session.CheckOnline("delete"); !status.ok()) {
    return status;
  }
  auto inspector = session.Open();
  if (!inspector.ok()) return inspector.status();
  if (!options.yes) {
    const auto slices = (*inspector)->Slices();
    if (!slices.ok()) return slices.status();
    const auto count = std::count_if(
        slices->begin(), slices->end(), [&](const SliceInfo& slice) {
          return slice.driver == options.driver && slice.origin == "endpoint";
        });
    return MakeError(
        absl::StatusCode::kFailedPrecondition,
        fmt::format("{} slices that driver '{}' has published would be "
                    "deleted; nothing was changed: add --yes to do it",
                    count, Clean(options.driver)));
  }
  const auto deleted =
      (*inspector)->DeleteSlices(options.driver, options.reason);
  if (!deleted.ok()) return deleted.status();
  if (session.is_document()) {
    PrintDocument(
        session.out(),
        DocumentOf("OperatorDecision", Json{{"kind", "slices"},
                                            {"name", options.driver},
                                            {"deleted", *deleted},
                                            {"reason", options.reason}}),
        options.format);
  } else if (options.format == Format::kName) {
    session.out() << "slices/" << Clean(options.driver) << "\n";
  } else {
    session.out() << fmt::format(
        "{} slices of driver '{}' are deleted; a driver that runs publishes "
        "anew\n",
        *deleted, Clean(options.driver));
  }
  return absl::OkStatus();
}

absl::Status EndpointKubeconfig(const Session& session) {
  const Options& options = session.options();
  if (absl::Status status = session.CheckOnline("endpoint"); !status.ok()) {
    return status;
  }
  auto inspector = session.Open();
  if (!inspector.ok()) return inspector.status();
  const auto path = (*inspector)->DriverKubeconfig(options.driver);
  if (!path.ok()) return path.status();
  if (session.is_document()) {
    PrintDocument(
        session.out(),
        DocumentOf("DriverKubeconfig",
                   Json{{"driver", options.driver}, {"path", path->string()}}),
        options.format);
  } else {
    session.out() << Clean(path->string()) << "\n";
  }
  return absl::OkStatus();
}

}  // namespace devmgr::ctl
