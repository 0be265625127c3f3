// SPDX-License-Identifier: Apache-2.0
//
// Create, put and patch.
#include <fmt/core.h>

#include <set>
#include <utility>

#include "api/names.h"
#include "apistore/patch.h"
#include "apistore/store.h"
#include "apistore/strategic_merge.h"
#include "common/status.h"
#include "common/uuid.h"

namespace devmgr::apistore {
namespace {

/// What the system alone sets.
constexpr const char* kSystemFields[] = {"uid", "creationTimestamp",
                                         "generation", "deletionTimestamp",
                                         "deletionGracePeriodSeconds"};

bool IsTrue(const Json& object, const char* field) {
  const auto it = object.find(field);
  return it != object.end() && it->is_boolean() && it->get<bool>();
}

std::vector<Cause> CheckOwners(const Json& object) {
  static const Json::json_pointer kOwners("/metadata/ownerReferences");
  std::vector<Cause> causes;
  if (!object.contains(kOwners)) return causes;
  const Json& owners = object.at(kOwners);
  if (!owners.is_array()) {
    return {InvalidField("metadata.ownerReferences", owners, "must be a list")};
  }
  int controllers = 0;
  for (std::size_t i = 0; i < owners.size(); ++i) {
    const std::string path = fmt::format("metadata.ownerReferences[{}]", i);
    if (!owners[i].is_object()) {
      causes.push_back(InvalidField(path, owners[i], "must be an object"));
      continue;
    }
    for (const char* field : {"apiVersion", "kind", "name", "uid"}) {
      const auto it = owners[i].find(field);
      if (it == owners[i].end() || !it->is_string() ||
          it->get_ref<const std::string&>().empty()) {
        causes.push_back(RequiredField(path + "." + field, ""));
      }
    }
    controllers += IsTrue(owners[i], "controller") ? 1 : 0;
  }
  if (controllers > 1) {
    causes.push_back(
        InvalidField("metadata.ownerReferences", owners,
                     "Only one reference can have Controller set to true"));
  }
  return causes;
}

std::vector<Cause> CheckImmutable(const ResourceType& type, const Json& object,
                                  const Json& old) {
  std::vector<Cause> causes;
  for (const std::string& text : type.immutable) {
    const Json::json_pointer pointer(text);
    const Json was = old.contains(pointer) ? old.at(pointer) : Json();
    const Json is = object.contains(pointer) ? object.at(pointer) : Json();
    if (was == is) continue;
    std::string field = text.substr(1);
    for (char& c : field) c = c == '/' ? '.' : c;
    causes.push_back(InvalidField(std::move(field), is, "field is immutable"));
  }
  return causes;
}

/// Whether anything but metadata and status differs.
bool HasNewSpec(const Json& object, const Json& old) {
  std::set<std::string> fields;
  for (const auto& [key, value] : object.items()) fields.insert(key);
  for (const auto& [key, value] : old.items()) fields.insert(key);
  for (const std::string& key : fields) {
    if (key == "metadata" || key == "status") continue;
    const auto is = object.find(key);
    const auto was = old.find(key);
    if ((is == object.end()) != (was == old.end())) return true;
    if (is != object.end() && *is != *was) return true;
  }
  return false;
}

void TakeField(Json& object, const Json& from, const std::string& field) {
  if (const auto it = from.find(field); it != from.end()) {
    object[field] = *it;
  } else {
    object.erase(field);
  }
}

/// `old` with the status of `object`, or with one field of it.
Json WithStatusOf(const Json& object, const Json& old,
                  const std::string& only_field) {
  Json result = old;
  if (only_field.empty()) {
    TakeField(result, object, "status");
    return result;
  }
  const Json nothing = Json::object();
  const auto status = object.find("status");
  const bool has = status != object.end() && status->is_object();
  if (!result["status"].is_object()) result["status"] = Json::object();
  TakeField(result["status"], has ? *status : nothing, only_field);
  if (result["status"].empty()) TakeField(result, old, "status");
  return result;
}

}  // namespace

std::optional<ApiError> Store::CheckBody(const Target& target,
                                         Json& object) const {
  if (!object.is_object()) return BadRequest("the body is no object");
  const std::string version = target.type->ApiVersion(target.version);
  for (const auto& [field, want] :
       {std::pair<const char*, const std::string&>("apiVersion", version),
        std::pair<const char*, const std::string&>("kind",
                                                   target.type->kind)}) {
    const auto it = object.find(field);
    if (it == object.end()) {
      object[field] = want;
    } else if (*it != want) {
      return BadRequest(fmt::format(
          "{} in the data ({}) does not match the expected one ({})", field,
          Dump(*it), want));
    }
  }
  Json& metadata = object["metadata"];
  if (metadata.is_null()) metadata = Json::object();
  if (!metadata.is_object()) return BadRequest("'metadata' is no object");
  metadata.erase("managedFields");
  metadata.erase("selfLink");
  for (const char* field :
       {"name", "namespace", "generateName", "uid", "resourceVersion"}) {
    if (metadata.contains(field) && !metadata[field].is_string()) {
      return BadRequest(fmt::format("'metadata.{}' is no text", field));
    }
  }
  const std::string ns = MetaText(object, "namespace");
  if (!ns.empty() && ns != target.ns) {
    return BadRequest(
        "the namespace of the provided object does not match the namespace "
        "sent on the request");
  }
  if (!target.ns.empty()) metadata["namespace"] = target.ns;
  if (const auto& served = target.type->versions[target.version];
      served.to_stored != nullptr) {
    served.to_stored(object);
  }
  object["apiVersion"] = target.type->ApiVersion(0);
  return std::nullopt;
}

std::optional<ApiError> Store::CheckNewName(const Target& target,
                                            Json& object) {
  static constexpr std::string_view kLetters = "bcdfghjklmnpqrstvwxz2456789";
  static constexpr std::size_t kRandomLetters = 5;
  static constexpr std::size_t kMaxBase = 58;
  static constexpr int kTries = 8;
  const ResourceType& type = *target.type;
  std::string name = MetaText(object, "name");
  const std::string base = MetaText(object, "generateName").substr(0, kMaxBase);
  if (name.empty() && base.empty()) {
    return Invalid(
        type, "",
        {RequiredField("metadata.name", "name or generateName is required")});
  }
  for (int i = 0; i < kTries && MetaText(object, "name").empty(); ++i) {
    name = base;
    std::uint64_t bits = options_.random();
    for (std::size_t j = 0; j < kRandomLetters; ++j) {
      name += kLetters[bits % kLetters.size()];
      bits /= kLetters.size();
    }
    if (TableOf(type).count({target.ns, name}) == 0) {
      object["metadata"]["name"] = name;
    }
  }
  if (MetaText(object, "name").empty()) return AlreadyExists(type, name);
  if (const std::string problem = api::CheckSubdomain(name); !problem.empty()) {
    return Invalid(type, name, {InvalidField("metadata.name", name, problem)});
  }
  return std::nullopt;
}

std::optional<ApiError> Store::CheckAdmission(const ResourceType& type,
                                              Json& object, const Json* old,
                                              std::int64_t now) const {
  std::vector<Cause> causes = CheckOwners(object);
  if (old != nullptr) {
    for (Cause& cause : CheckImmutable(type, object, *old)) {
      causes.push_back(std::move(cause));
    }
  }
  if (type.admit) {
    for (Cause& cause : type.admit(object, old, TimeText(now))) {
      causes.push_back(std::move(cause));
    }
  }
  if (options_.admit) {
    for (Cause& cause : options_.admit(type, object, old)) {
      causes.push_back(std::move(cause));
    }
  }
  const std::string name = MetaText(object, "name");
  if (!causes.empty()) return Invalid(type, name, std::move(causes));
  if (const std::size_t size = Dump(object).size();
      size > options_.max_object_bytes) {
    return TooLarge(fmt::format("{} \"{}\" has {} bytes, {} at most",
                                type.resource, name, size,
                                options_.max_object_bytes));
  }
  return std::nullopt;
}

Answer Store::Create(const Target& target, Json object,
                     const WriteOptions& options) {
  const ResourceType& type = *target.type;
  if (auto error = CheckBody(target, object)) return Refuse(*error);
  if (!MetaText(object, "resourceVersion").empty()) {
    return Refuse(BadRequest(
        "resourceVersion should not be set on objects to be created"));
  }
  if (auto error = CheckNewName(target, object)) return Refuse(*error);
  const ObjectKey key = KeyOf(object);
  if (TableOf(type).count(key) != 0) {
    return Refuse(AlreadyExists(type, key.name));
  }
  Json& metadata = object["metadata"];
  for (const char* field : kSystemFields) metadata.erase(field);
  metadata.erase("resourceVersion");
  metadata["uid"] = UuidText(options_.random(), options_.random());
  metadata["creationTimestamp"] = TimeText(options.now);
  if (type.has_generation) metadata["generation"] = 1;
  if (type.has_status && !type.status_on_create) object.erase("status");
  if (options.authorize) {
    if (auto error = options.authorize(&object, nullptr)) return Refuse(*error);
  }
  if (auto error = CheckAdmission(type, object, nullptr, options.now)) {
    return Refuse(*error);
  }
  if (options.dry_run) return Shown(target, object, 201);
  return ShowCommitted(target, Commit(type, key, std::move(object), {}), 201);
}

std::optional<ApiError> Store::CheckPut(const Target& target,
                                        const Json& object,
                                        const Json& old) const {
  const std::string name = MetaText(object, "name");
  if (!name.empty() && name != target.name) {
    return BadRequest(
        fmt::format("the name of the object ({}) does not match the name on "
                    "the URL ({})",
                    name, target.name));
  }
  const std::string uid = MetaText(object, "uid");
  if (!uid.empty() && uid != MetaText(old, "uid")) {
    return Conflict(*target.type, target.name,
                    fmt::format("Precondition failed: UID in precondition: {}, "
                                "UID in object meta: {}",
                                uid, MetaText(old, "uid")));
  }
  const std::string version = MetaText(object, "resourceVersion");
  if (!version.empty() && version != MetaText(old, "resourceVersion")) {
    return Conflict(*target.type, target.name,
                    "the object has been modified; please apply your changes "
                    "to the latest version and try again");
  }
  return std::nullopt;
}

Answer Store::Put(const Target& target, Json object,
                  const WriteOptions& options) {
  const Table& table = TableOf(*target.type);
  const auto it = table.find({target.ns, target.name});
  if (auto error = CheckBody(target, object)) return Refuse(*error);
  if (it == table.end()) return Refuse(NotHere(target));
  return Update(target, std::move(object), it->second.owners, options);
}

/// `object` in its stored version, of an object that exists.
Answer Store::Update(const Target& target, Json object, DeviceOwners owners,
                     const WriteOptions& options) {
  const ResourceType& type = *target.type;
  const ObjectKey key{target.ns, target.name};
  const Json& old = *TableOf(type).at(key).object;
  if (auto error = CheckPut(target, object, old)) return Refuse(*error);
  if (options.status) {
    object = WithStatusOf(object, old, options.only_status_field);
  } else if (type.has_status) {
    TakeField(object, old, "status");
  }
  Json& metadata = object["metadata"];
  metadata["name"] = key.name;
  for (const char* field : kSystemFields) {
    TakeField(metadata, old["metadata"], field);
  }
  TakeField(metadata, old["metadata"], "resourceVersion");
  if (options.authorize) {
    if (auto error = options.authorize(&object, &old)) return Refuse(*error);
  }
  if (auto error = CheckAdmission(type, object, &old, options.now)) {
    return Refuse(*error);
  }
  if (type.has_generation && HasNewSpec(object, old)) {
    metadata["generation"] = MetaNumber(old, "generation") + 1;
  }
  if (type.has_device_status) DropLostOwners(object, owners);
  if (options.dry_run) return Shown(target, object);
  // Who applied an entry is part of what is durable, as managedFields are of
  // an object.
  if (object == old && owners == TableOf(type).at(key).owners) {
    return Shown(target, old);
  }
  const bool done = metadata.contains("deletionTimestamp") &&
                    !HasFinalizers(object) &&
                    MetaNumber(old, "deletionGracePeriodSeconds") == 0;
  if (!done) {
    return ShowCommitted(
        target, Commit(type, key, std::move(object), std::move(owners)));
  }
  // The last finalizer went.
  Answer answer = Shown(target, object);
  const Committed gone = Commit(type, key, std::nullopt, {});
  return gone.error.has_value() ? Refuse(*gone.error) : answer;
}

Answer Store::Patch(const Target& target, PatchKind kind, const Json& patch,
                    const WriteOptions& options) {
  const ResourceType& type = *target.type;
  const Table& table = TableOf(type);
  const auto it = table.find({target.ns, target.name});
  if (it == table.end()) return Refuse(NotHere(target));
  DeviceOwners owners = it->second.owners;
  Json object = InVersion(type, target.version, *it->second.object);
  absl::Status status;
  switch (kind) {
    case PatchKind::kMerge:
      MergePatch(object, patch);
      break;
    case PatchKind::kJson:
      status = JsonPatch(object, patch);
      break;
    case PatchKind::kStrategic:
      if (!type.has_strategic_merge) {
        return Refuse(UnsupportedMediaType(
            fmt::format("strategic merge patches of {} are not supported",
                        type.QualifiedResource())));
      }
      status = StrategicMerge(type.kind, object, patch);
      break;
    case PatchKind::kApply:
      if (std::optional<ApiError> error =
              Apply(target, patch, options, object, owners)) {
        return Refuse(*error);
      }
      break;
  }
  if (absl::IsFailedPrecondition(status)) {
    return Refuse(Invalid(type, target.name, {{"", MessageOf(status), ""}}));
  }
  if (!status.ok()) return Refuse(BadRequest(MessageOf(status)));
  if (auto error = CheckBody(target, object)) return Refuse(*error);
  return Update(target, std::move(object), std::move(owners), options);
}

std::optional<ApiError> Store::Apply(const Target& target, const Json& body,
                                     const WriteOptions& options, Json& object,
                                     DeviceOwners& owners) const {
  static constexpr std::size_t kMaxManager = 128;
  const ResourceType& type = *target.type;
  if (!type.has_device_status || !options.status) {
    return UnsupportedMediaType(fmt::format(
        "server-side apply is supported for the status of claims only, not "
        "for {}",
        type.QualifiedResource()));
  }
  if (options.field_manager.empty() ||
      options.field_manager.size() > kMaxManager) {
    return InvalidOptions(
        "PatchOptions",
        {RequiredField("fieldManager",
                       "is required for apply patch, of up to 128 bytes")});
  }
  if (!body.is_object()) return BadRequest("the body is no object");
  if (const std::string uid = MetaText(body, "uid"); !uid.empty()) {
    object["metadata"]["uid"] = uid;
  }
  const ApplyResult result = ApplyDeviceStatus(
      object, body, {options.field_manager, options.force}, owners);
  const ApplyRefusal* refusal = std::get_if<ApplyRefusal>(&result);
  if (refusal == nullptr) return std::nullopt;
  if (!refusal->conflict) return Invalid(type, target.name, refusal->causes);
  ApiError error = Conflict(
      type, target.name,
      fmt::format("Apply failed with {} conflict(s): {}",
                  refusal->causes.size(), refusal->causes.front().message));
  error.causes = refusal->causes;
  return error;
}

}  // namespace devmgr::apistore
