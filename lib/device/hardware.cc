// SPDX-License-Identifier: Apache-2.0
#include "device/hardware.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>
#include <variant>

#include "common/ascii.h"

namespace devmgr::device {
namespace {

constexpr std::string_view kPci = "pci:";
constexpr std::string_view kUuid = "uuid:";
constexpr std::string_view kNode = "node:";
constexpr std::string_view kSysfs = "sysfs:";
constexpr std::size_t kUuidLength = 36;

// Numbers of the kernel, Documentation/admin-guide/devices.txt.
constexpr std::int64_t kDrmMajor = 226;
constexpr std::int64_t kAccelMajor = 261;

char Lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

bool IsHex(char c) {
  const char lower = Lower(c);
  return IsDigit(c) || (lower >= 'a' && lower <= 'f');
}

std::string Lowered(std::string_view text) {
  std::string lowered(text);
  for (char& c : lowered) c = Lower(c);
  return lowered;
}

/// Takes the hexadecimal digits at the end of `text`, `least` to `most`.
/// Nothing when there are others.
std::optional<std::string_view> TakeHex(std::string_view* text,
                                        std::size_t least, std::size_t most) {
  std::size_t count = 0;
  while (count < text->size() && IsHex((*text)[text->size() - 1 - count])) {
    ++count;
  }
  if (count < least || count > most) return std::nullopt;
  const std::string_view digits = text->substr(text->size() - count);
  text->remove_suffix(count);
  return digits;
}

bool Take(std::string_view* text, char last) {
  if (text->empty() || text->back() != last) return false;
  text->remove_suffix(1);
  return true;
}

bool IsUuid(std::string_view text) {
  if (text.size() != kUuidLength) return false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool is_dash = i == 8 || i == 13 || i == 18 || i == 23;
    if (is_dash ? text[i] != '-' : !IsHex(text[i])) return false;
  }
  return text.find_first_not_of("0-") != std::string_view::npos;
}

/// The name of an attribute without a domain is any driver's.
bool IsNamed(std::string_view attribute,
             const std::vector<std::string>& names) {
  const std::size_t slash = attribute.rfind('/');
  const std::string_view bare =
      slash == std::string_view::npos ? attribute : attribute.substr(slash + 1);
  return std::any_of(names.begin(), names.end(), [&](const auto& name) {
    const bool is_full = name.find('/') != std::string::npos;
    return name == (is_full ? attribute : bare);
  });
}

/// The texts of an attribute; none when it is of another kind.
std::vector<std::string_view> TextsOf(const DeviceAttribute& attribute) {
  if (const auto* text = std::get_if<SharedText>(&attribute)) {
    return {text->view()};
  }
  std::vector<std::string_view> texts;
  if (const auto* list = std::get_if<RareVector<SharedText>>(&attribute)) {
    for (const SharedText& text : *list) texts.push_back(text.view());
  }
  return texts;
}

/// `name` may end in a star, which stands for any end.
bool Matches(std::string_view text, std::string_view name) {
  if (!name.ends_with('*')) return text == name;
  name.remove_suffix(1);
  return text.starts_with(name);
}

bool MatchesAny(std::string_view text, const std::vector<std::string>& names) {
  return std::any_of(names.begin(), names.end(), [&](const std::string& name) {
    return Matches(text, name);
  });
}

void AddNode(const NodeFacts& node, Hardware* hardware) {
  hardware->Add(PhysicalIdentity{
      fmt::format("{}{}{}:{}", kNode, node.type, node.major, node.minor)});
  // A disk, or a port of a hub, is not the controller that it hangs on.
  if (node.type != "c" || node.sysfs_device.empty()) return;
  const std::string_view device = node.sysfs_device;
  const std::string_view name = device.substr(device.rfind('/') + 1);
  if (auto pci = PciIdentity(name); pci.has_value()) {
    hardware->Add(std::move(pci));
  } else if (node.major == kDrmMajor || node.major == kAccelMajor) {
    hardware->Add(PhysicalIdentity{std::string(kSysfs) + node.sysfs_device});
  }
}

void AddAll(const Hardware& more, Hardware* hardware) {
  for (const PhysicalIdentity& identity : more.identities) {
    hardware->Add(identity);
  }
  hardware->part = hardware->part || more.part;
}

}  // namespace

std::string IdentityText(const PhysicalIdentity& identity) {
  static constexpr std::array<std::pair<std::string_view, const char*>, 4>
      kWords = {{{kPci, "PCI address"},
                 {kUuid, "UUID"},
                 {kNode, "device node"},
                 {kSysfs, "sysfs device"}}};
  for (const auto& [prefix, word] : kWords) {
    if (!identity.text.starts_with(prefix)) continue;
    return fmt::format("{} {}", word,
                       std::string_view(identity.text).substr(prefix.size()));
  }
  return identity.text;
}

std::optional<PhysicalIdentity> PciIdentity(std::string_view address) {
  const auto function = TakeHex(&address, 1, 1);
  if (!function.has_value() || !Take(&address, '.')) return std::nullopt;
  const auto slot = TakeHex(&address, 2, 2);
  if (!slot.has_value() || !Take(&address, ':')) return std::nullopt;
  const auto bus = TakeHex(&address, 2, 2);
  if (!bus.has_value()) return std::nullopt;
  std::string_view domain = "0";
  if (!address.empty()) {
    if (!Take(&address, ':')) return std::nullopt;
    const auto digits = TakeHex(&address, 1, 8);
    if (!digits.has_value() || !address.empty()) return std::nullopt;
    domain = *digits;
  }
  // Some tools write eight digits of it, the kernel four.
  while (domain.size() > 1 && domain.front() == '0') domain.remove_prefix(1);
  return PhysicalIdentity{fmt::format("{}{:0>4}:{}:{}.{}", kPci,
                                      Lowered(domain), Lowered(*bus),
                                      Lowered(*slot), *function)};
}

std::optional<PhysicalIdentity> UuidIdentity(std::string_view text) {
  if (text.size() < kUuidLength) return std::nullopt;
  const std::string_view uuid = text.substr(text.size() - kUuidLength);
  const std::string_view prefix = text.substr(0, text.size() - kUuidLength);
  if (!IsUuid(uuid)) return std::nullopt;
  if (!prefix.empty() && IsLetterOrDigit(prefix.back())) return std::nullopt;
  return PhysicalIdentity{std::string(kUuid) + Lowered(uuid)};
}

void Hardware::Add(std::optional<PhysicalIdentity> identity) {
  if (!identity.has_value()) return;
  const auto at =
      std::lower_bound(identities.begin(), identities.end(), *identity);
  if (at != identities.end() && *at == *identity) return;
  identities.insert(at, *std::move(identity));
}

const PhysicalIdentity* FindClash(const Hardware& a, const Hardware& b) {
  if (a.part && b.part) return nullptr;
  for (const PhysicalIdentity& identity : a.identities) {
    if (std::binary_search(b.identities.begin(), b.identities.end(),
                           identity)) {
      return &identity;
    }
  }
  return nullptr;
}

Hardware HardwareOf(const SliceDevice& device, const HardwareOptions& options) {
  Hardware hardware;
  bool has_parent = false;
  for (const auto& [name, value] : device.attributes) {
    has_parent = has_parent || IsNamed(name.view(), options.parent_attributes);
    const bool is_pci = IsNamed(name.view(), options.pci_attributes);
    const bool is_uuid = IsNamed(name.view(), options.uuid_attributes);
    if (!is_pci && !is_uuid) continue;
    for (const std::string_view text : TextsOf(value)) {
      if (is_pci) hardware.Add(PciIdentity(text));
      if (is_uuid) hardware.Add(UuidIdentity(text));
    }
  }
  hardware.part =
      !hardware.empty() && (has_parent || !device.consumes_counters.empty());
  return hardware;
}

bool IsReplica(const DeviceId& id) {
  const std::size_t colons = id.value.rfind("::");
  if (colons == std::string::npos || colons == 0) return false;
  const std::string_view number = std::string_view(id.value).substr(colons + 2);
  return !number.empty() && std::all_of(number.begin(), number.end(), IsDigit);
}

Hardware HardwareOf(const DeviceId& id) {
  Hardware hardware;
  if (IsReplica(id)) return hardware;
  const std::string_view text = id.value;
  // Without its domain it may be anything.
  if (std::count(text.begin(), text.end(), ':') == 2) {
    hardware.Add(PciIdentity(text));
  }
  hardware.Add(UuidIdentity(text));
  hardware.part = !hardware.empty() && text.starts_with("MIG-");
  return hardware;
}

HardwareNames NamesOf(const Hardware& hardware) {
  HardwareNames names;
  for (const PhysicalIdentity& identity : hardware.identities) {
    const std::string_view text = identity.text;
    for (const auto& [prefix, name] :
         {std::pair(kUuid, &names.uuid), std::pair(kPci, &names.pci_address)}) {
      if (!name->empty() || !text.starts_with(prefix)) continue;
      *name = text.substr(std::string_view(prefix).size());
    }
  }
  return names;
}

HardwareNames NamesOf(const SliceDevice& device,
                      const HardwareOptions& options) {
  HardwareNames names;
  Hardware pci;
  for (const auto& [name, value] : device.attributes) {
    for (const std::string_view text : TextsOf(value)) {
      if (IsNamed(name.view(), options.pci_attributes)) {
        if (pci.empty()) pci.Add(PciIdentity(text));
      }
      if (names.uuid.empty() && IsNamed(name.view(), options.uuid_attributes) &&
          UuidIdentity(text).has_value()) {
        names.uuid = text;
      }
    }
  }
  names.pci_address = NamesOf(pci).pci_address;
  return names;
}

HardwareNames NamesOf(const DeviceId& id) {
  const std::string device =
      IsReplica(id) ? id.value.substr(0, id.value.rfind("::")) : id.value;
  HardwareNames names = NamesOf(HardwareOf(DeviceId(device)));
  if (!names.uuid.empty()) names.uuid = device;
  return names;
}

bool IsControlNode(std::string_view path, const HardwareOptions& options) {
  return MatchesAny(path, options.control_nodes);
}

Hardware HardwareOf(const std::vector<NodeFacts>& nodes,
                    const HardwareOptions& options) {
  Hardware hardware;
  for (const NodeFacts& node : nodes) {
    if (!IsControlNode(node.path, options)) AddNode(node, &hardware);
  }
  return hardware;
}

Hardware HardwareOf(const std::vector<DeviceId>& ids,
                    const std::vector<NodeFacts>& nodes,
                    const HardwareOptions& options) {
  if (std::any_of(ids.begin(), ids.end(), IsReplica)) return {};
  Hardware hardware = HardwareOf(nodes, options);
  for (const DeviceId& id : ids) AddAll(HardwareOf(id), &hardware);
  return hardware;
}

bool IsSharedByIntent(std::string_view owner, const HardwareOptions& options) {
  return MatchesAny(owner, options.shared);
}

}  // namespace devmgr::device
