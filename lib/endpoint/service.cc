// SPDX-License-Identifier: Apache-2.0
#include "endpoint/service.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <random>
#include <set>
#include <utility>

#include "apistore/patch.h"
#include "common/status.h"
#include "endpoint/device_status_rules.h"
#include "endpoint/protobuf_body.h"
#include "endpoint/slice_rules.h"
#include "endpoint/store_journal.h"

namespace devmgr::endpoint {
namespace {

using apistore::Answer;
using apistore::ApiError;
using apistore::ApiRequest;
using apistore::Cause;
using apistore::Json;
using apistore::ResourceType;
using apistore::Verb;

constexpr std::string_view kReviews =
    "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
/// A watch that does not say how long lasts half an hour to an hour.
constexpr std::int64_t kWatchSeconds = 1800;
constexpr const char* kPublished[] = {"Node", "ResourceClaim", "DeviceClass",
                                      "Pod"};

ResourceType Namespaces() {
  ResourceType type;
  type.versions = {{"v1"}};
  type.kind = "Namespace";
  type.resource = "namespaces";
  type.singular = "namespace";
  type.has_generation = false;
  return type;
}

/// Also what patches bring that is not known goes.
void CleanDeviceStatus(ResourceType& claims) {
  claims.admit = [admit = claims.admit](Json& object, const Json* old,
                                        std::string_view now) {
    DropUnknownStatusFields(object);
    return admit(object, old, now);
  };
}

ResourceType NewEvents(const ResourceType& events) {
  ResourceType type = events;
  type.group = "events.k8s.io";
  type.fields.clear();
  type.has_strategic_merge = false;
  return type;
}

std::vector<ResourceType> TypesOf(const EndpointOptions& options) {
  std::vector<ResourceType> types;
  for (ResourceType& type : apistore::BuiltinTypes()) {
    if (type.resource == "leases") continue;
    if (!options.serve_v1beta2) {
      type.versions.erase(
          std::remove_if(type.versions.begin(), type.versions.end(),
                         [](const apistore::ServedVersion& version) {
                           return version.name == "v1beta2";
                         }),
          type.versions.end());
    }
    if (type.resource == "events") types.push_back(NewEvents(type));
    if (type.has_device_status) CleanDeviceStatus(type);
    types.push_back(std::move(type));
  }
  types.push_back(Namespaces());
  return types;
}

std::uint64_t RandomBits() {
  static thread_local std::random_device device;
  return std::uint64_t{device()} << 32 | device();
}

RightsOptions RightsOf(const EndpointOptions& options) {
  return {options.node_name, options.node_uid, options.network_pools,
          options.read_pods, options.max_slices};
}

bool IsPublished(const std::string& kind) {
  return std::find(std::begin(kPublished), std::end(kPublished), kind) !=
         std::end(kPublished);
}

/// Revisions of claims: so seldom does one of them wait for the disk.
constexpr std::uint64_t kReservedAtOnce = 1'000;

bool IsEvent(const ResourceType& type) { return type.resource == "events"; }

}  // namespace

Service::Service(EndpointOptions options, Journal& journal)
    : options_(std::move(options)),
      journal_(journal),
      rights_(RightsOf(options_)) {}

Service::~Service() {
  // Else the next run begins above what was reserved, so that drivers list
  // again. So it does when this fails.
  if (reserved_ == 0 || is_in_doubt_) return;
  journal_.End(store_->revision()).IgnoreError();
}

std::int64_t Service::Now() const {
  if (options_.now) return options_.now();
  return std::chrono::duration_cast<std::chrono::seconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

std::unique_ptr<apistore::Store> Service::MakeStore(std::uint64_t revision) {
  apistore::Store::Options options;
  options.first_revision = revision;
  options.history_changes = options_.history_changes;
  options.watch.events = options_.watch_events;
  options.random = RandomBits;
  options.admit = [this](const ResourceType& type, const Json& object,
                         const Json* old) {
    std::vector<Cause> causes;
    if (type.has_device_status) return CheckDeviceStatusRules(object, old);
    if (type.kind != "ResourceSlice") return causes;
    causes = CheckNodeOwners(object, options_.node_name, options_.node_uid);
    for (Cause& cause : CheckSliceRules(object, options_.node_name)) {
      causes.push_back(std::move(cause));
    }
    return causes;
  };
  options.persist = [this](const apistore::StoreRecord& record) {
    return Persist(record);
  };
  return std::make_unique<apistore::Store>(TypesOf(options_),
                                           std::move(options));
}

std::unique_ptr<apistore::Store> Service::MakeEventStore() {
  apistore::Store::Options options;
  // Above those of an earlier run, which are not remembered.
  options.first_revision =
      static_cast<std::uint64_t>(std::max<std::int64_t>(Now(), 1)) * 1'000'000;
  options.history_changes = 1;
  options.random = RandomBits;
  return std::make_unique<apistore::Store>(TypesOf(options_),
                                           std::move(options));
}

absl::Status Service::Persist(const apistore::StoreRecord& record) {
  DEVMGR_RETURN_IF_ERROR(
      Record(EntryOf(record), record.resource == "resourceclaims"));
  const bool slice = record.resource == "resourceslices";
  if (driver_.empty() || !options_.on_change) return absl::OkStatus();
  DriverChange change;
  change.kind =
      slice ? DriverChange::Kind::kSlice : DriverChange::Kind::kClaimStatus;
  change.driver = driver_;
  change.ns = record.key.ns;
  change.name = record.key.name;
  change.revision = record.revision;
  if (record.object != nullptr) change.json = apistore::Dump(*record.object);
  options_.on_change(change);
  return absl::OkStatus();
}

absl::Status Service::Record(const JournalEntry& entry, bool is_claim) {
  // Pods wait for this on their way, and their claims are in the ledger.
  const bool is_later =
      is_claim && driver_.empty() && !durable_claims_.contains(entry.key);
  if (is_later || is_in_doubt_) {
    DEVMGR_RETURN_IF_ERROR(ReserveAbove(entry.revision));
  }
  return is_later ? journal_.AppendLater(entry) : Append(entry, is_claim);
}

absl::Status Service::Append(const JournalEntry& entry, bool is_claim) {
  // Also after an error it may be on disk.
  if (is_claim) durable_claims_.insert(entry.key);
  if (const absl::Status status = journal_.Append(entry); !status.ok()) {
    is_in_doubt_ = true;
    return status;
  }
  if (entry.value.empty()) durable_claims_.erase(entry.key);
  return absl::OkStatus();
}

absl::Status Service::ReserveAbove(std::uint64_t revision) {
  if (revision < reserved_) return absl::OkStatus();
  const std::uint64_t reserved = revision + kReservedAtOnce;
  DEVMGR_RETURN_IF_ERROR(journal_.Reserve(reserved));
  reserved_ = reserved;
  return absl::OkStatus();
}

absl::Status Service::Replay() {
  DEVMGR_ASSIGN_OR_RETURN(const JournalContent content, journal_.Replay());
  std::uint64_t last = std::max<std::uint64_t>(content.last_revision, 1);
  for (const JournalEntry& entry : content.entries) {
    last = std::max(last, entry.revision);
  }
  store_ = MakeStore(last);
  events_ = MakeEventStore();
  for (const JournalEntry& entry : content.entries) {
    const absl::StatusOr<apistore::StoreRecord> record = RecordOf(entry);
    const bool is_restored = record.ok() && store_->Restore(*record);
    // It may be lost, and its owner publishes it anew.
    if (entry.is_later) continue;
    if (!record.ok()) return record.status();
    if (!is_restored) {
      return DataLossError("the journal has an entry under '{}' that is none",
                           entry.key);
    }
    if (record->resource == "resourceclaims") durable_claims_.insert(entry.key);
  }
  return absl::OkStatus();
}

std::optional<Answer> Service::ServeOpen(std::string_view target) const {
  for (const std::string_view path : {"/healthz", "/livez", "/readyz"}) {
    if (target.substr(0, target.find('?')) == path) {
      return Discover(*store_, path, options_.git_version);
    }
  }
  return std::nullopt;
}

std::variant<Answer, OpenedWatch> Service::Serve(const ServiceRequest& request,
                                                 TimePoint now,
                                                 std::size_t watches) {
  RequestRate& rate =
      rates_.try_emplace(request.driver, options_.max_requests_per_second)
          .first->second;
  if (!rate.Take(now)) {
    ++counts_.limited;
    return Refuse(apistore::TooManyRequests(1));
  }
  if (const auto error = apistore::CheckAccept(request.accept)) {
    return Refuse(*error);
  }
  if (request.target.substr(0, request.target.find('?')) == kReviews) {
    return ServeReview(request);
  }
  if (request.method == "GET" || request.method == "HEAD") {
    auto discovered = Discover(*store_, request.target, options_.git_version);
    if (discovered.has_value()) return *std::move(discovered);
  }
  const auto read = ReadApiRequest(*store_, request.method, request.target);
  if (const auto* error = std::get_if<ApiError>(&read)) return Refuse(*error);
  const auto& api = std::get<ApiRequest>(read);
  if (const auto error = rights_.CheckVerb(request.driver, api)) {
    return Refuse(*error);
  }
  return ServeObjects(request, api, watches);
}

std::variant<Answer, OpenedWatch> Service::ServeObjects(
    const ServiceRequest& request, const ApiRequest& read,
    std::size_t watches) {
  if (read.verb == Verb::kWatch) return Watch(read, request.driver, watches);
  std::vector<std::string> warnings;
  const auto body = BodyOf(request, &read, warnings);
  if (const auto* error = std::get_if<ApiError>(&body)) return Refuse(*error);
  const auto& text = std::get<std::string>(body);
  if (IsEvent(*read.target.type)) return ServeEvent(request, read, text);
  if (!read.target.name.empty()) {
    const apistore::ObjectPtr object =
        store_->Find(*read.target.type, {read.target.ns, read.target.name});
    if (object != nullptr) {
      // A write is refused by the rules, which name what it was about.
      const bool reads =
          read.verb == Verb::kGet || read.target.type->kind == "ResourceClaim";
      const auto error = rights_.CheckVisible(request.driver, read, *object);
      if (reads && error.has_value()) return Refuse(*error);
    }
  }
  const bool is_patch = read.verb == Verb::kPatch;
  driver_ = request.driver;
  Answer answer =
      ServeRequest(*store_, read,
                   {is_patch ? request.content_type : "application/json", text},
                   Now(), rights_.RulesFor(request.driver, read, *store_));
  driver_.clear();
  answer.warnings.insert(answer.warnings.end(), warnings.begin(),
                         warnings.end());
  return answer;
}

std::variant<Answer, OpenedWatch> Service::Watch(const ApiRequest& request,
                                                 const std::string& driver,
                                                 std::size_t watches) {
  if (watches >= options_.max_watches) {
    ++counts_.limited;
    return Refuse(apistore::TooManyRequests(1));
  }
  apistore::WatchOptions options = WatchOptionsOf(request);
  options.visible = rights_.RulesFor(driver, request, *store_).visible;
  auto opened = store_->Watch(request.target, options);
  if (auto* answer = std::get_if<Answer>(&opened)) return std::move(*answer);
  // The version is of a ledger that is there no more, as after a restore from a
  // backup. A watch that waited for it would miss what changes until then.
  std::uint64_t since = 0;
  if (apistore::ReadRevision(options.resource_version, since) &&
      since > store_->revision()) {
    return Refuse(apistore::Expired(fmt::format(
        "resource version {} is above {}, the last one of this endpoint: list "
        "again",
        since, store_->revision())));
  }
  OpenedWatch watch;
  watch.stream = std::get<1>(std::move(opened));
  watch.bookmarks = options.bookmarks;
  watch.timeout_seconds = WatchTimeoutOf(request).value_or(
      kWatchSeconds + static_cast<std::int64_t>(RandomBits() % kWatchSeconds));
  return watch;
}

std::variant<ApiError, std::string> Service::BodyOf(
    const ServiceRequest& request, const ApiRequest* read,
    std::vector<std::string>& warnings) {
  const std::string_view type = apistore::MediaType(request.content_type);
  if (type == kProtobufMediaType) {
    const auto body = DecodeProtobufBody(request.body);
    if (!body.ok()) return apistore::BadRequest(MessageOf(body.status()));
    counts_.unknown_fields += body->unknown_fields;
    return apistore::Dump(body->object);
  }
  const bool is_patch = read != nullptr && read->verb == Verb::kPatch;
  if (!is_patch && !request.body.empty() && !type.empty() &&
      type != "application/json") {
    return apistore::UnsupportedMediaType(fmt::format(
        "the body of the request was in an unknown format - accepted media "
        "types include: application/json, {}",
        kProtobufMediaType));
  }
  // The directives of other patches look like fields.
  const bool is_plain_patch =
      is_patch && (type == "application/apply-patch+yaml" ||
                   type == "application/merge-patch+json");
  const bool whole =
      read != nullptr && (read->verb == Verb::kCreate ||
                          read->verb == Verb::kUpdate || is_plain_patch);
  if (!whole) return std::string(request.body);
  return DropUnknown(request.body, *read, warnings);
}

std::variant<ApiError, std::string> Service::DropUnknown(
    std::string_view text, const ApiRequest& read,
    std::vector<std::string>& warnings) {
  absl::StatusOr<Json> json = apistore::ParseForeignJson(text);
  if (!json.ok()) return apistore::BadRequest(MessageOf(json.status()));
  if (json->is_object() && !json->contains("kind")) {
    (*json)["kind"] = read.target.type->kind;
    (*json)["apiVersion"] = read.target.type->ApiVersion(read.target.version);
  }
  const std::vector<std::string> dropped = DropUnknownFields(*json);
  if (dropped.empty()) return std::string(text);
  counts_.dropped_fields += dropped.size();
  const std::string validation = read.Parameter("fieldValidation");
  std::string texts;
  for (const std::string& field : dropped) {
    const std::string warning = fmt::format("unknown field \"{}\"", field);
    texts += (texts.empty() ? "" : ", ") + warning;
    if (validation != "Ignore" && warnings.size() < 20) {
      warnings.push_back(fmt::format("299 - {}", apistore::Dump(warning)));
    }
  }
  if (validation == "Strict") {
    return apistore::BadRequest("strict decoding error: " + texts);
  }
  return apistore::Dump(*json);
}

Answer Service::ServeEvent(const ServiceRequest& request,
                           const ApiRequest& read, const std::string& body) {
  const bool is_patch = read.verb == Verb::kPatch;
  if (!is_patch) {
    const absl::StatusOr<Json> json = apistore::ParseForeignJson(body);
    if (!json.ok()) {
      return Refuse(apistore::BadRequest(MessageOf(json.status())));
    }
    if (const auto error = rights_.CheckEvent(request.driver, *json, *store_)) {
      return Refuse(*error);
    }
  }
  const auto own = ReadApiRequest(*events_, request.method, request.target);
  if (const auto* error = std::get_if<ApiError>(&own)) return Refuse(*error);
  apistore::ClientRules rules;
  rules.authorize = [&](const Json* object,
                        const Json*) -> std::optional<ApiError> {
    return rights_.CheckEvent(request.driver, *object, *store_);
  };
  Answer answer =
      ServeRequest(*events_, std::get<ApiRequest>(own),
                   {is_patch ? request.content_type : "application/json", body},
                   Now(), rules);
  if (!answer.ok()) return answer;
  DropOldEvents(*std::get<ApiRequest>(own).target.type);
  if (options_.on_change) {
    options_.on_change({DriverChange::Kind::kEvent, request.driver,
                        apistore::MetaText(answer.body, "namespace"),
                        apistore::MetaText(answer.body, "name"),
                        events_->revision(), apistore::Dump(answer.body)});
  }
  return answer;
}

void Service::DropOldEvents(const ResourceType& type) {
  const std::vector<apistore::ObjectPtr> events = events_->All(type);
  if (events.size() <= options_.max_events) return;
  const auto version = [](const apistore::ObjectPtr& event) {
    std::uint64_t revision = 0;
    apistore::ReadRevision(apistore::MetaText(*event, "resourceVersion"),
                           revision);
    return revision;
  };
  const auto oldest = std::min_element(
      events.begin(), events.end(),
      [&](const auto& a, const auto& b) { return version(a) < version(b); });
  events_->Remove(type, apistore::KeyOf(**oldest));
}

Answer Service::ServeReview(const ServiceRequest& request) {
  if (request.method != "POST") {
    return Refuse(apistore::MethodNotAllowed(
        "the server does not allow this method on the requested resource"));
  }
  std::vector<std::string> warnings;
  const auto body = BodyOf(request, nullptr, warnings);
  if (const auto* error = std::get_if<ApiError>(&body)) return Refuse(*error);
  const absl::StatusOr<Json> json =
      apistore::ParseForeignJson(std::get<std::string>(body));
  if (!json.ok() || !json->is_object()) {
    return Refuse(apistore::BadRequest("the body is no review"));
  }
  return rights_.Review(request.driver, *json);
}

const ResourceType* Service::TypeOf(const std::string& kind) const {
  for (const ResourceType& type : store_->types()) {
    if (type.kind == kind) return &type;
  }
  return nullptr;
}

absl::Status Service::Publish(Json object, apistore::ObjectKey& key) {
  const std::string kind = apistore::TextField(object, "kind");
  if (!IsPublished(kind)) {
    return InvalidArgumentError("objects of kind '{}' are not published here",
                                kind);
  }
  const bool namespaced = TypeOf(kind)->namespaced;
  key = apistore::KeyOf(object);
  if (namespaced && key.ns.empty()) key.ns = "default";
  const Answer answer = store_->Publish(std::move(object), Now());
  const std::string message = apistore::TextField(answer.body, "message");
  if (answer.code == 503) return UnavailableError("{}", message);
  if (!answer.ok()) return InvalidArgumentError("{}", message);
  key = apistore::KeyOf(answer.body);
  if (!namespaced) return absl::OkStatus();
  if (store_->Find(*TypeOf("Namespace"), {"", key.ns}) != nullptr) {
    return absl::OkStatus();
  }
  const Answer made = store_->Publish({{"apiVersion", "v1"},
                                       {"kind", "Namespace"},
                                       {"metadata", {{"name", key.ns}}},
                                       {"status", {{"phase", "Active"}}}},
                                      Now());
  if (made.ok()) return absl::OkStatus();
  return UnavailableError("{}", apistore::TextField(made.body, "message"));
}

absl::Status Service::SetObjects(const std::string& kind,
                                 const std::vector<std::string>& objects) {
  if (!IsPublished(kind)) {
    return InvalidArgumentError("objects of kind '{}' are not published here",
                                kind);
  }
  absl::Status first;
  std::set<apistore::ObjectKey> named;
  bool all_named = true;
  for (const std::string& text : objects) {
    absl::StatusOr<Json> json = apistore::ParseForeignJson(text);
    apistore::ObjectKey key;
    if (!json.ok()) {
      first.Update(json.status());
    } else if (!json->is_object() ||
               apistore::TextField(*json, "kind") != kind) {
      first.Update(InvalidArgumentError("an object is not of kind '{}'", kind));
    } else {
      first.Update(Publish(*std::move(json), key));
    }
    all_named = all_named && !key.name.empty();
    named.insert(key);
  }
  // Each object that is here may be the one without a readable name.
  if (!all_named) return first;
  const ResourceType* type = TypeOf(kind);
  for (const apistore::ObjectPtr& object : store_->All(*type)) {
    const apistore::ObjectKey key = apistore::KeyOf(*object);
    if (!named.contains(key) && !store_->Remove(*type, key)) {
      first.Update(
          UnavailableError("{} '{}' cannot be removed", kind, key.name));
    }
  }
  return first;
}

absl::Status Service::PutObject(const std::string& object) {
  absl::StatusOr<Json> json = apistore::ParseForeignJson(object);
  if (!json.ok()) return json.status();
  if (!json->is_object()) return InvalidArgumentError("this is no object");
  apistore::ObjectKey key;
  return Publish(*std::move(json), key);
}

std::vector<std::string> Service::Objects(const std::string& kind) const {
  std::vector<std::string> texts;
  const ResourceType* type = TypeOf(kind);
  if (type == nullptr) return texts;
  for (const apistore::ObjectPtr& object : store_->All(*type)) {
    texts.push_back(apistore::Dump(*object));
  }
  return texts;
}

absl::StatusOr<std::size_t> Service::DeleteSlices(const std::string& driver) {
  const ResourceType* type = TypeOf("ResourceSlice");
  static const Json::json_pointer kDriver("/spec/driver");
  std::size_t deleted = 0;
  // The owner hears of it as if the driver had deleted them.
  driver_ = driver;
  std::string failed;
  for (const apistore::ObjectPtr& slice : store_->All(*type)) {
    if (!slice->contains(kDriver) || slice->at(kDriver) != driver) continue;
    if (!store_->Remove(*type, apistore::KeyOf(*slice))) {
      failed = apistore::MetaText(*slice, "name");
      break;
    }
    ++deleted;
  }
  driver_.clear();
  if (failed.empty()) return deleted;
  return UnavailableError("slice '{}' cannot be removed", failed);
}

}  // namespace devmgr::endpoint
