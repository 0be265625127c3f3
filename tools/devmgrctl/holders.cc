// SPDX-License-Identifier: Apache-2.0
#include "holders.h"

#include <fmt/core.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "listing.h"
#include "objects.h"
#include "text.h"

namespace devmgr::ctl {
namespace {

/// One of the two is there.
struct Holder {
  std::optional<DeviceHolderInfo> ours;
  std::optional<ForeignHolderInfo> foreign;

  const std::string& id() const {
    return ours ? ours->container_id : foreign->holder.container_id;
  }
  const ObjectName& pod() const {
    return ours ? ours->pod : foreign->holder.pod;
  }
  const PodUid& uid() const {
    return ours ? ours->pod_uid : foreign->holder.pod_uid;
  }
  const std::string& container() const {
    return ours ? ours->container.value : foreign->holder.container.value;
  }
};

Json ItemOf(const Holder& holder) {
  return holder.ours ? ctl::ItemOf(*holder.ours) : ctl::ItemOf(*holder.foreign);
}

std::string ForeignText(const Holder& holder) {
  if (holder.ours) return "no";
  if (holder.foreign->freed.empty()) return "yes";
  return "freed: " + holder.foreign->freed;
}

/// What `text` gives for each device; of foreign holders nothing is known.
template <typename Text>
std::string OfDevices(const Holder& holder, Text text) {
  std::vector<std::string> texts;
  if (!holder.ours) return "";
  for (const ContainerDevice& device : holder.ours->devices) {
    const std::string one = text(device);
    if (!one.empty()) texts.push_back(one);
  }
  return Join(texts, ",");
}

std::string CdiText(const Holder& holder) {
  if (!holder.ours) return Join(holder.foreign->holder.cdi_devices, ",");
  std::vector<std::string> names;
  for (const ContainerDevice& device : holder.ours->devices) {
    names.insert(names.end(), device.cdi_devices.begin(),
                 device.cdi_devices.end());
  }
  names.insert(names.end(), holder.ours->cdi_devices.begin(),
               holder.ours->cdi_devices.end());
  return Join(names, ",");
}

std::string AgeText(const Session& session, const Holder& holder) {
  if (holder.foreign) return session.Age(holder.foreign->since);
  return holder.ours->created_at ? session.Age(*holder.ours->created_at) : "";
}

const Listing<Holder> kHolders = {
    "HolderList",
    "holder",
    {"CONTAINER", "NAMESPACE", "POD", "NAME", "DEVICES", "FOREIGN", "AGE"},
    {"UID", "STATE", "CDI DEVICES", "UUIDS", "PCI ADDRESSES", "ENDPOINT",
     "WHY"},
    [](const Holder& holder) {
      return std::vector<std::string>{holder.pod().ns, holder.pod().name,
                                      holder.container(), holder.id()};
    },
    [](const Holder& holder) {
      return holder.id().empty()
                 ? holder.pod().ToString() + "/" + holder.container()
                 : holder.id();
    },
    [](const Session& session, const Holder& holder) {
      // As much of the ID as crictl shows.
      return Row{session.wide() ? holder.id() : holder.id().substr(0, 13),
                 holder.pod().ns,
                 holder.pod().name,
                 holder.container(),
                 holder.ours ? DevicesText(*holder.ours)
                             : DevicesText(holder.foreign->holder),
                 ForeignText(holder),
                 AgeText(session, holder)};
    },
    [](const Session&, const Holder& holder) {
      return Row{
          holder.uid().value,
          holder.ours ? holder.ours->state : "",
          CdiText(holder),
          OfDevices(holder, [](const auto& device) { return device.uuid; }),
          OfDevices(holder,
                    [](const auto& device) { return device.pci_address; }),
          holder.foreign ? holder.foreign->endpoint : "",
          holder.foreign ? holder.foreign->holder.why : ""};
    }};

absl::StatusOr<std::vector<Holder>> AllHolders(const Session& session,
                                               Inspector& inspector) {
  std::vector<Holder> holders;
  auto ours = inspector.DeviceHolders();
  if (absl::IsUnimplemented(ours.status())) {
    session.Note(
        "the daemon is too old to list containers of pods; these are foreign "
        "holders only");
  } else if (!ours.ok()) {
    return ours.status();
  } else {
    for (DeviceHolderInfo& info : *ours) {
      holders.push_back({std::move(info), std::nullopt});
    }
  }
  auto foreign = inspector.ForeignHolders();
  if (!foreign.ok()) return foreign.status();
  for (ForeignHolderInfo& info : *foreign) {
    holders.push_back({std::nullopt, std::move(info)});
  }
  return holders;
}

}  // namespace

absl::Status GetHolders(const Session& session, Inspector& inspector) {
  const std::string& ns = session.options().ns;
  const std::string& id = session.options().name.name;
  auto holders = AllHolders(session, inspector);
  if (!holders.ok()) return holders.status();
  std::erase_if(*holders, [&](const Holder& holder) {
    return !holder.id().starts_with(id) ||
           (!ns.empty() && holder.pod().ns != ns);
  });
  if (id.empty()) return List(session, *std::move(holders), kHolders);
  if (holders->empty()) {
    return MakeError(
        absl::StatusCode::kNotFound,
        fmt::format("no container '{}' is known to hold devices", id));
  }
  return ListNamed(session, *std::move(holders), kHolders);
}

}  // namespace devmgr::ctl
