// SPDX-License-Identifier: Apache-2.0
#include "apistore/api_request.h"

#include <absl/strings/numbers.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "apistore/patch.h"
#include "common/status.h"

namespace devmgr::apistore {
namespace {

int HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

std::string Decoded(std::string_view text, bool in_query) {
  std::string decoded;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%' && i + 2 < text.size() && HexDigit(text[i + 1]) >= 0 &&
        HexDigit(text[i + 2]) >= 0) {
      decoded +=
          static_cast<char>(HexDigit(text[i + 1]) * 16 + HexDigit(text[i + 2]));
      i += 2;
    } else {
      decoded += in_query && text[i] == '+' ? ' ' : text[i];
    }
  }
  return decoded;
}

std::vector<std::string_view> Split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (!text.empty()) {
    const std::size_t at = text.find(separator);
    const std::string_view part = text.substr(0, at);
    if (!part.empty()) parts.push_back(part);
    if (at == std::string_view::npos) break;
    text.remove_prefix(at + 1);
  }
  return parts;
}

std::vector<std::string> PathOf(std::string_view target) {
  std::vector<std::string> path;
  for (const std::string_view part :
       Split(target.substr(0, target.find('?')), '/')) {
    path.push_back(Decoded(part, /*in_query=*/false));
  }
  return path;
}

std::map<std::string, std::string> QueryOf(std::string_view target) {
  std::map<std::string, std::string> query;
  const std::size_t at = target.find('?');
  if (at == std::string_view::npos) return query;
  for (const std::string_view part : Split(target.substr(at + 1), '&')) {
    const std::size_t equals = part.find('=');
    const std::string_view value =
        equals == std::string_view::npos ? "" : part.substr(equals + 1);
    query.emplace(Decoded(part.substr(0, equals), true), Decoded(value, true));
  }
  return query;
}

bool IsTrueText(const std::string& text) {
  return text == "true" || text == "1";
}

/// The type and version that `path` begins with; `next` is what follows.
const ResourceType* ReadType(const Store& store,
                             const std::vector<std::string>& path,
                             ApiRequest& request, std::size_t& next) {
  const bool core = !path.empty() && path[0] == "api";
  const std::size_t version = core ? 1 : 2;
  if (path.size() < version + 2) return nullptr;
  if (!core && path[0] != "apis") return nullptr;
  next = version + 1;
  bool in_namespace = false;
  if (path[next] == "namespaces" && path.size() >= next + 3) {
    request.target.ns = path[next + 1];
    in_namespace = true;
    next += 2;
  }
  const ResourceType* type = store.FindType(core ? "" : path[1], path[next++]);
  if (type == nullptr || (in_namespace && !type->namespaced)) return nullptr;
  for (std::size_t i = 0; i < type->versions.size(); ++i) {
    if (type->versions[i].name == path[version]) {
      request.target.type = type;
      request.target.version = i;
      return type;
    }
  }
  return nullptr;
}

std::optional<Verb> VerbOf(std::string_view method, const ApiRequest& request) {
  const bool one = !request.target.name.empty();
  const bool status = !request.subresource.empty();
  if (method == "GET" || method == "HEAD") {
    if (one) return Verb::kGet;
    return IsTrueText(request.Parameter("watch")) ? Verb::kWatch : Verb::kList;
  }
  if (method == "POST" && !one) return Verb::kCreate;
  if (method == "PUT" && one) return Verb::kUpdate;
  if (method == "PATCH" && one) return Verb::kPatch;
  if (method == "DELETE" && !status) {
    return one ? Verb::kDelete : Verb::kDeleteCollection;
  }
  return std::nullopt;
}

std::optional<PatchKind> PatchKindOf(std::string_view content_type) {
  const std::string_view type = MediaType(content_type);
  if (type == "application/merge-patch+json") return PatchKind::kMerge;
  if (type == "application/json-patch+json") return PatchKind::kJson;
  if (type == "application/strategic-merge-patch+json") {
    return PatchKind::kStrategic;
  }
  if (type == "application/apply-patch+yaml" ||
      type == "application/apply-patch+json") {
    return PatchKind::kApply;
  }
  return std::nullopt;
}

ApiError UnknownFormat(std::string_view accepted) {
  return UnsupportedMediaType(
      "the body of the request was in an unknown format - accepted media types "
      "include: " +
      std::string(accepted));
}

ListOptions ListOptionsOf(const ApiRequest& request, const ClientRules& rules) {
  ListOptions options;
  options.visible = rules.visible;
  options.field_selector = request.Parameter("fieldSelector");
  options.label_selector = request.Parameter("labelSelector");
  options.resource_version = request.Parameter("resourceVersion");
  options.version_match = request.Parameter("resourceVersionMatch");
  options.continue_token = request.Parameter("continue");
  if (!absl::SimpleAtoi(request.Parameter("limit"), &options.limit)) {
    options.limit = 0;
  }
  return options;
}

/// What the body of a DELETE says beside the query.
std::optional<ApiError> ReadDeleteOptions(const ApiBody& body,
                                          DeleteOptions& options) {
  if (body.text.empty()) return std::nullopt;
  const absl::StatusOr<Json> json = ParseForeignJson(body.text);
  if (!json.ok()) return BadRequest(MessageOf(json.status()));
  if (!json->is_object()) return BadRequest("the body is no object");
  if (const auto it = json->find("preconditions"); it != json->end()) {
    options.uid = TextField(*it, "uid");
    options.resource_version = TextField(*it, "resourceVersion");
  }
  if (const auto it = json->find("gracePeriodSeconds");
      it != json->end() && it->is_number_integer()) {
    options.grace_period_seconds = it->get<std::int64_t>();
  }
  if (const auto it = json->find("dryRun");
      it != json->end() && it->is_array() && !it->empty()) {
    options.dry_run = true;
  }
  return std::nullopt;
}

Answer ServeDelete(Store& store, const ApiRequest& request, const ApiBody& body,
                   std::int64_t now, const ClientRules& rules) {
  DeleteOptions options;
  options.now = now;
  options.authorize = rules.authorize;
  options.dry_run = !request.Parameter("dryRun").empty();
  std::int64_t grace = 0;
  if (absl::SimpleAtoi(request.Parameter("gracePeriodSeconds"), &grace)) {
    options.grace_period_seconds = grace;
  }
  if (const auto error = ReadDeleteOptions(body, options)) {
    return Refuse(*error);
  }
  if (request.verb == Verb::kDelete) {
    return store.Delete(request.target, options);
  }
  return store.DeleteCollection(request.target, ListOptionsOf(request, rules),
                                options);
}

Answer ServeWrite(Store& store, const ApiRequest& request, const ApiBody& body,
                  std::int64_t now, const ClientRules& rules) {
  WriteOptions options;
  options.now = now;
  options.authorize = rules.authorize;
  options.only_status_field = rules.only_status_field;
  options.status = request.subresource == "status";
  options.field_manager = request.Parameter("fieldManager");
  options.force = IsTrueText(request.Parameter("force"));
  const std::string dry_run = request.Parameter("dryRun");
  if (!dry_run.empty() && dry_run != "All") {
    return Refuse(BadRequest("dryRun must be 'All'"));
  }
  options.dry_run = !dry_run.empty();
  const std::optional<PatchKind> kind = PatchKindOf(body.content_type);
  if (request.verb == Verb::kPatch && !kind.has_value()) {
    return Refuse(UnknownFormat(
        "application/json-patch+json, application/merge-patch+json, "
        "application/strategic-merge-patch+json, "
        "application/apply-patch+yaml"));
  }
  const std::string_view type = MediaType(body.content_type);
  if (request.verb != Verb::kPatch && !type.empty() &&
      type != "application/json") {
    return Refuse(UnknownFormat("application/json"));
  }
  absl::StatusOr<Json> json = ParseForeignJson(body.text);
  if (!json.ok()) return Refuse(BadRequest(MessageOf(json.status())));
  switch (request.verb) {
    case Verb::kCreate:
      return store.Create(request.target, *std::move(json), options);
    case Verb::kUpdate:
      return store.Put(request.target, *std::move(json), options);
    default:
      return store.Patch(request.target, *kind, *json, options);
  }
}

}  // namespace

std::string_view MediaType(std::string_view content_type) {
  return content_type.substr(0, content_type.find_first_of("; "));
}

std::vector<std::pair<std::string, std::string>> HeadersOf(
    const Answer& answer) {
  std::vector<std::pair<std::string, std::string>> headers;
  headers.emplace_back("Content-Type", answer.body.is_string()
                                           ? "text/plain"
                                           : "application/json");
  if (answer.retry_after_seconds > 0) {
    headers.emplace_back("Retry-After",
                         std::to_string(answer.retry_after_seconds));
  }
  for (const std::string& warning : answer.warnings) {
    headers.emplace_back("Warning", warning);
  }
  return headers;
}

std::string BodyOf(const Answer& answer) {
  return answer.body.is_string() ? answer.body.get<std::string>()
                                 : Dump(answer.body) + "\n";
}

Answer EarlyRefusal(int status, std::string_view text) {
  ApiError error = status == 413 ? TooLarge(std::string(text))
                                 : BadRequest(std::string(text));
  error.code = status;
  return Refuse(error);
}

std::string_view VerbName(Verb verb) {
  switch (verb) {
    case Verb::kGet:
      return "get";
    case Verb::kList:
      return "list";
    case Verb::kWatch:
      return "watch";
    case Verb::kCreate:
      return "create";
    case Verb::kUpdate:
      return "update";
    case Verb::kPatch:
      return "patch";
    case Verb::kDelete:
      return "delete";
    case Verb::kDeleteCollection:
      return "deletecollection";
  }
  return "";
}

std::string ApiRequest::Parameter(const std::string& name) const {
  const auto it = query.find(name);
  return it == query.end() ? "" : it->second;
}

std::variant<ApiError, ApiRequest> ReadApiRequest(const Store& store,
                                                  std::string_view method,
                                                  std::string_view target) {
  ApiRequest request;
  request.query = QueryOf(target);
  const std::vector<std::string> path = PathOf(target);
  std::size_t next = 0;
  const ResourceType* type = ReadType(store, path, request, next);
  if (type == nullptr || path.size() > next + 2) return PathNotFound();
  if (path.size() > next) request.target.name = path[next];
  if (path.size() > next + 1) request.subresource = path[next + 1];
  const bool has_subresource =
      request.subresource == "status" && type->has_status;
  if (!request.subresource.empty() && !has_subresource) return PathNotFound();
  if (!request.target.name.empty() && type->namespaced &&
      request.target.ns.empty()) {
    return PathNotFound();
  }
  const std::optional<Verb> verb = VerbOf(method, request);
  const bool lacks_namespace =
      verb == Verb::kCreate && type->namespaced && request.target.ns.empty();
  if (!verb.has_value() || lacks_namespace) {
    return MethodNotAllowed(
        "the server does not allow this method on the requested resource");
  }
  request.verb = *verb;
  return request;
}

std::optional<ApiError> CheckAccept(std::string_view accept) {
  if (accept.empty()) return std::nullopt;
  for (std::string_view entry : Split(accept, ',')) {
    while (!entry.empty() && entry.front() == ' ') entry.remove_prefix(1);
    const std::string_view type = MediaType(entry);
    const bool json =
        type == "application/json" || type == "application/*" || type == "*/*";
    if (json && entry.find("as=") == std::string_view::npos) {
      return std::nullopt;
    }
  }
  return NotAcceptable(
      "only the following media types are accepted: application/json");
}

Answer ServeRequest(Store& store, const ApiRequest& request,
                    const ApiBody& body, std::int64_t now,
                    const ClientRules& rules) {
  switch (request.verb) {
    case Verb::kGet:
      return store.Get(request.target, request.Parameter("resourceVersion"));
    case Verb::kList:
      if (!request.Parameter("sendInitialEvents").empty()) {
        return Refuse(InvalidOptions(
            "ListOptions",
            {ForbiddenField("sendInitialEvents",
                            "sendInitialEvents is forbidden for list")}));
      }
      return store.List(request.target, ListOptionsOf(request, rules));
    case Verb::kCreate:
    case Verb::kUpdate:
    case Verb::kPatch:
      return ServeWrite(store, request, body, now, rules);
    case Verb::kDelete:
    case Verb::kDeleteCollection:
      return ServeDelete(store, request, body, now, rules);
    case Verb::kWatch:
      break;
  }
  return Refuse(InternalError("a watch is no single answer"));
}

WatchOptions WatchOptionsOf(const ApiRequest& request) {
  WatchOptions options;
  options.field_selector = request.Parameter("fieldSelector");
  options.label_selector = request.Parameter("labelSelector");
  options.resource_version = request.Parameter("resourceVersion");
  options.version_match = request.Parameter("resourceVersionMatch");
  const std::string initial = request.Parameter("sendInitialEvents");
  if (!initial.empty()) options.send_initial_events = IsTrueText(initial);
  options.bookmarks = IsTrueText(request.Parameter("allowWatchBookmarks"));
  return options;
}

std::optional<std::int64_t> WatchTimeoutOf(const ApiRequest& request) {
  constexpr std::int64_t kMostSeconds = 24 * 60 * 60;
  std::int64_t seconds = 0;
  if (!absl::SimpleAtoi(request.Parameter("timeoutSeconds"), &seconds) ||
      seconds <= 0) {
    return std::nullopt;
  }
  return std::min(seconds, kMostSeconds);
}

}  // namespace devmgr::apistore
