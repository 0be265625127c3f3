// SPDX-License-Identifier: Apache-2.0
#include "testing/fake_driver_store.h"

#include <devmgr/cdi_cache.h>
#include <fcntl.h>
#include <sys/file.h>

#include <algorithm>
#include <cerrno>
#include <nlohmann/json.hpp>
#include <optional>
#include <system_error>
#include <utility>

#include "api/names.h"
#include "cdi/qualified_name.h"
#include "common/ascii.h"
#include "common/status.h"
#include "testing/files.h"

namespace devmgr::testing {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kMaxRecordBytes = 16 * 1024 * 1024;
constexpr std::size_t kMaxUidBytes = 128;

/// What a CDI name allows in the middle, for vendors too.
std::string Sanitised(std::string_view text) {
  std::string name(text);
  for (char& c : name) {
    if (!IsLetterOrDigit(c) && c != '-' && c != '.' && c != '_') c = '_';
  }
  return name;
}

/// UIDs come over the wire and end up in file names.
absl::Status CheckUid(const std::string& uid) {
  const bool fits = !uid.empty() && uid.size() <= kMaxUidBytes &&
                    IsLetterOrDigit(uid.front()) && Sanitised(uid) == uid;
  if (fits) return absl::OkStatus();
  return InvalidArgumentError(
      "claim uid '{}' is not 1 to {} letters, digits, '-', '.', '_' with a "
      "letter or digit first",
      uid.substr(0, kMaxUidBytes), kMaxUidBytes);
}

/// Distinct for every claim and result: an admin-access device occurs in
/// several claims, and in several requests of one. The number stands last so
/// that the name ends as CDI wants it, whatever the device is called.
std::string CdiDeviceName(const std::string& uid, const std::string& device,
                          std::size_t number) {
  return fmt::format("{}-{}-{}", uid, Sanitised(device), number);
}

std::string EnvironmentName(const std::string& uid, std::size_t number) {
  std::string name = "DEVMGR_FAKE_DEVICE_" + uid;
  for (char& c : name) {
    if (!IsLetterOrDigit(c)) c = '_';
  }
  return fmt::format("{}_{}", name, number);
}

absl::StatusOr<PreparedClaim> PlanClaim(const std::string& driver,
                                        const ResourceClaim& claim,
                                        const std::string& uid) {
  PreparedClaim prepared{claim.metadata.FullName(), uid, {}};
  for (const auto& result : claim.status.allocation->results) {
    if (result.driver != driver) continue;
    PreparedDevice device;
    device.requests = {std::string(api::BaseRequestName(result.request))};
    device.pool = result.pool;
    device.device = result.device;
    device.share_id = result.share_id;
    device.cdi_ids = {
        CdiKindOfDriver(driver) + "=" +
        CdiDeviceName(uid, result.device, prepared.devices.size())};
    DEVMGR_RETURN_IF_ERROR(cdi::CheckQualifiedName(device.cdi_ids.front()));
    prepared.devices.push_back(std::move(device));
  }
  return prepared;
}

/// `number` devices are there already.
PreparedDevice DeviceByHandle(const std::string& driver, const std::string& uid,
                              const std::string& name, std::size_t number) {
  PreparedDevice device;
  device.pool = "handle";
  device.device = name;
  device.cdi_ids = {CdiKindOfDriver(driver) + "=" +
                    CdiDeviceName(uid, name, number)};
  return device;
}

absl::StatusOr<PreparedClaim> PlanHandle(const std::string& driver,
                                         const ObjectName& name,
                                         const std::string& uid,
                                         const ResourceHandle& handle) {
  PreparedClaim prepared{name, uid, {}};
  auto& devices = prepared.devices;
  if (!handle.structured.has_value()) {
    devices.push_back(DeviceByHandle(driver, uid, "claim", 0));
    return prepared;
  }
  for (const auto& result : handle.structured->results) {
    devices.push_back(
        DeviceByHandle(driver, uid, result.named_resource, devices.size()));
    DEVMGR_RETURN_IF_ERROR(
        cdi::CheckQualifiedName(devices.back().cdi_ids.front()));
  }
  return prepared;
}

std::string Dump(const Json& json) {
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string EncodeRecord(const PreparedClaim& claim) {
  Json devices = Json::array();
  for (const PreparedDevice& device : claim.devices) {
    devices.push_back({{"requests", device.requests},
                       {"pool", device.pool},
                       {"device", device.device},
                       {"cdiIds", device.cdi_ids},
                       {"shareId", device.share_id}});
  }
  return Dump({{"namespace", claim.name.ns},
               {"name", claim.name.name},
               {"uid", claim.uid},
               {"devices", devices}});
}

std::optional<PreparedClaim> DecodeRecord(const std::string& text) {
  try {
    const Json json = Json::parse(text);
    PreparedClaim claim;
    json.at("namespace").get_to(claim.name.ns);
    json.at("name").get_to(claim.name.name);
    json.at("uid").get_to(claim.uid);
    for (const Json& item : json.at("devices")) {
      PreparedDevice device;
      item.at("requests").get_to(device.requests);
      item.at("pool").get_to(device.pool);
      item.at("device").get_to(device.device);
      item.at("cdiIds").get_to(device.cdi_ids);
      item.at("shareId").get_to(device.share_id);
      claim.devices.push_back(std::move(device));
    }
    return claim;
  } catch (const nlohmann::json::exception&) {
    return std::nullopt;
  }
}

/// 0.5.0: the first version whose device names may begin with a digit, as
/// UIDs do.
CdiSpec SpecOf(const std::string& kind, const PreparedClaim& claim) {
  CdiSpec spec;
  spec.version = "0.5.0";
  spec.kind = kind;
  for (const PreparedDevice& device : claim.devices) {
    const std::size_t number = spec.devices.size();
    CdiSpecDevice& defined = spec.devices.emplace_back();
    defined.name = CdiDeviceName(claim.uid, device.device, number);
    defined.edits.env = {fmt::format("{}={}/{}",
                                     EnvironmentName(claim.uid, number),
                                     device.pool, device.device)};
  }
  return spec;
}

}  // namespace

std::string CdiKindOfDriver(std::string_view driver) {
  std::string vendor = Sanitised(driver);
  if (vendor.empty() || !IsLetter(vendor.front())) vendor = "fake-" + vendor;
  if (!IsLetterOrDigit(vendor.back())) vendor += "x";
  return vendor + "/claim";
}

absl::StatusOr<FakeDriverStore> FakeDriverStore::Open(
    std::string driver, std::filesystem::path state,
    std::filesystem::path cdi) {
  FakeDriverStore store;
  store.driver_ = std::move(driver);
  store.state_ = std::move(state);
  store.cdi_ = std::move(cdi);
  DEVMGR_RETURN_IF_ERROR(MakeDirectory(store.state_));
  DEVMGR_RETURN_IF_ERROR(MakeDirectory(store.cdi_));
  DEVMGR_ASSIGN_OR_RETURN(store.claims_, store.ReadClaims());
  return store;
}

absl::StatusOr<UniqueFd> FakeDriverStore::Lock() const {
  const std::string file = state_.string() + ".lock";
  UniqueFd lock(::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  int locked = lock.valid() ? 0 : -1;
  if (lock.valid()) {
    do {
      locked = ::flock(lock.get(), LOCK_EX);
    } while (locked != 0 && errno == EINTR);
  }
  if (locked == 0) return lock;
  return ErrnoStatus(errno, fmt::format("cannot lock '{}'", file));
}

absl::StatusOr<PreparedClaim> FakeDriverStore::ReadRecord(
    const std::filesystem::path& file) const {
  DEVMGR_ASSIGN_OR_RETURN(const std::string text,
                          ReadFile(file, kMaxRecordBytes));
  std::optional<PreparedClaim> claim = DecodeRecord(text);
  if (claim.has_value() && RecordFile(claim->uid) == file) {
    return *std::move(claim);
  }
  return DataLossError(
      "'{}' is not a record of a prepared claim; remove it and the spec files "
      "'{}-*' in '{}' by hand",
      file.string(), driver_, cdi_.string());
}

absl::Status FakeDriverStore::RefreshClaim(const std::string& uid) {
  absl::StatusOr<PreparedClaim> claim = ReadRecord(RecordFile(uid));
  if (absl::IsNotFound(claim.status())) {
    claims_.erase(uid);
    return absl::OkStatus();
  }
  DEVMGR_RETURN_IF_ERROR(claim.status());
  claims_.insert_or_assign(uid, *std::move(claim));
  return absl::OkStatus();
}

absl::StatusOr<std::map<std::string, PreparedClaim>>
FakeDriverStore::ReadClaims() const {
  DEVMGR_ASSIGN_OR_RETURN(const UniqueFd lock, Lock());
  std::error_code error;
  std::vector<std::filesystem::path> files;
  for (std::filesystem::directory_iterator entry(state_, error), end;
       !error && entry != end; entry.increment(error)) {
    files.push_back(entry->path());
  }
  if (error) {
    return ErrnoStatus(error.value(), fmt::format("cannot read directory '{}'",
                                                  state_.string()));
  }
  std::map<std::string, PreparedClaim> claims;
  for (const std::filesystem::path& file : files) {
    // A record that was not complete when its writer died: never answered.
    if (file.extension() == ".tmp") {
      DEVMGR_RETURN_IF_ERROR(RemoveFile(file));
      continue;
    }
    if (file.extension() != ".json") continue;
    DEVMGR_ASSIGN_OR_RETURN(PreparedClaim claim, ReadRecord(file));
    std::string uid = claim.uid;
    claims.emplace(std::move(uid), std::move(claim));
  }
  return claims;
}

std::filesystem::path FakeDriverStore::RecordFile(
    const std::string& uid) const {
  return state_ / (uid + ".json");
}

std::string FakeDriverStore::SpecName(const std::string& uid) const {
  return fmt::format("{}-{}.json", driver_, uid);
}

absl::StatusOr<PreparedClaim> FakeDriverStore::Prepare(
    const ResourceClaim& claim, const std::string& uid, LostSpec lost) {
  return Prepare(uid, lost, [&] { return PlanClaim(driver_, claim, uid); });
}

absl::StatusOr<PreparedClaim> FakeDriverStore::PrepareByHandle(
    const ObjectName& name, const std::string& uid,
    const ResourceHandle& handle, LostSpec lost) {
  return Prepare(uid, lost,
                 [&] { return PlanHandle(driver_, name, uid, handle); });
}

absl::StatusOr<PreparedClaim> FakeDriverStore::Prepare(const std::string& uid,
                                                       LostSpec lost,
                                                       const Planner& plan) {
  DEVMGR_RETURN_IF_ERROR(CheckUid(uid));
  DEVMGR_ASSIGN_OR_RETURN(const UniqueFd lock, Lock());
  DEVMGR_RETURN_IF_ERROR(RefreshClaim(uid));
  auto known = claims_.find(uid);
  if (known == claims_.end()) {
    DEVMGR_ASSIGN_OR_RETURN(PreparedClaim planned, plan());
    DEVMGR_RETURN_IF_ERROR(
        WriteFileAtomically(RecordFile(uid), EncodeRecord(planned)));
    known = claims_.emplace(uid, std::move(planned)).first;
  } else if (lost == LostSpec::kLeave) {
    return known->second;
  }
  DEVMGR_RETURN_IF_ERROR(WriteSpecFile(known->second));
  return known->second;
}

absl::Status FakeDriverStore::WriteSpecFile(const PreparedClaim& claim) const {
  // A spec file without devices is invalid and would hide nothing but errors.
  if (claim.devices.empty()) return absl::OkStatus();
  const CdiSpec spec = SpecOf(CdiKindOfDriver(driver_), claim);
  DEVMGR_ASSIGN_OR_RETURN(const std::string wanted,
                          EncodeCdiSpec(spec, CdiFormat::kJson));
  const std::string name = SpecName(claim.uid);
  const absl::StatusOr<std::string> present =
      ReadFile(cdi_ / name, wanted.size());
  if (present.ok() && *present == wanted) return absl::OkStatus();
  return WriteCdiSpec(spec, cdi_, name).status();
}

absl::Status FakeDriverStore::Unprepare(const std::string& uid) {
  // What cannot be a claim of ours is none.
  if (!CheckUid(uid).ok()) return absl::OkStatus();
  DEVMGR_ASSIGN_OR_RETURN(const UniqueFd lock, Lock());
  DEVMGR_RETURN_IF_ERROR(RefreshClaim(uid));
  const auto known = claims_.find(uid);
  if (known == claims_.end()) return absl::OkStatus();
  DEVMGR_RETURN_IF_ERROR(RemoveCdiSpec(cdi_, SpecName(uid)));
  DEVMGR_RETURN_IF_ERROR(RemoveFile(RecordFile(uid)));
  claims_.erase(known);
  return absl::OkStatus();
}

}  // namespace devmgr::testing
