// SPDX-License-Identifier: Apache-2.0
//
// Lists and the beginnings of watches.
#include <absl/strings/escaping.h>
#include <fmt/core.h>

#include <utility>

#include "apistore/patch.h"
#include "apistore/store.h"
#include "common/status.h"

namespace devmgr::apistore {
namespace {

constexpr const char* kContinueExpired =
    "The provided continue parameter is too old to display a consistent list "
    "result. You can start a new list without the continue parameter, or use "
    "the continue token in this response to retrieve the remainder of the "
    "results. Continuing with the provided token results in an inconsistent "
    "list - objects that were created, modified, or deleted between the time "
    "the first chunk was returned and now may show up in the list.";

std::string EncodeContinue(std::uint64_t revision, const ObjectKey& start) {
  const std::string text = Dump({{"v", "meta.k8s.io/v1"},
                                 {"rv", revision},
                                 {"ns", start.ns},
                                 {"start", start.name}});
  std::string token;
  absl::WebSafeBase64Escape(text, &token);
  return token;
}

std::vector<Cause> CheckMatch(const ListOptions& options) {
  const std::string& match = options.version_match;
  const char* const field = "resourceVersionMatch";
  if (match.empty()) return {};
  if (options.resource_version.empty()) {
    return {ForbiddenField(field,
                           "resourceVersionMatch is forbidden unless "
                           "resourceVersion is provided")};
  }
  if (!options.continue_token.empty()) {
    return {ForbiddenField(
        field, "resourceVersionMatch is forbidden when continue is provided")};
  }
  if (match != "Exact" && match != "NotOlderThan") {
    return {{"FieldValueNotSupported",
             fmt::format("Unsupported value: \"{}\": supported values: "
                         "\"Exact\", \"NotOlderThan\", \"\"",
                         match),
             field}};
  }
  if (match == "Exact" && options.resource_version == "0") {
    return {ForbiddenField(field,
                           "resourceVersionMatch \"exact\" is forbidden for "
                           "resourceVersion \"0\"")};
  }
  return {};
}

std::vector<Cause> CheckMatch(const WatchOptions& options) {
  const std::string& match = options.version_match;
  const char* const field = "resourceVersionMatch";
  if (options.send_initial_events.has_value()) {
    if (match == "NotOlderThan") return {};
    return {ForbiddenField(field,
                           "sendInitialEvents requires setting "
                           "resourceVersionMatch to NotOlderThan")};
  }
  if (match.empty()) return {};
  return {ForbiddenField(field,
                         "resourceVersionMatch is forbidden for watch unless "
                         "sendInitialEvents is provided")};
}

}  // namespace

std::optional<ApiError> Store::CheckVersion(std::string_view text,
                                            std::uint64_t& revision) const {
  revision = 0;
  if (text.empty()) return std::nullopt;
  if (!ReadRevision(text, revision)) {
    return BadRequest(fmt::format("invalid resource version: '{}'", text));
  }
  if (revision > revision_) {
    return VersionTooLarge(text, std::to_string(revision_));
  }
  return std::nullopt;
}

std::variant<ApiError, Selectors> Store::ReadSelectors(
    const ResourceType& type, const std::string& fields,
    const std::string& labels, Visibility visible) const {
  Selectors selectors;
  absl::StatusOr<FieldSelector> by_field = FieldSelector::Parse(fields, type);
  if (!by_field.ok()) return BadRequest(MessageOf(by_field.status()));
  absl::StatusOr<LabelSelector> by_label = LabelSelector::Parse(labels);
  if (!by_label.ok()) return BadRequest(MessageOf(by_label.status()));
  selectors.fields = *std::move(by_field);
  selectors.labels = *std::move(by_label);
  selectors.visible = std::move(visible);
  return selectors;
}

std::map<ObjectKey, ObjectPtr> Store::ChangedSince(
    const ResourceType& type, std::uint64_t revision) const {
  std::map<ObjectKey, ObjectPtr> before;
  for (auto it = history_.After(revision); it != history_.end(); ++it) {
    const Change& change = **it;
    // The first change of an object says what it was.
    if (&change.type() == &type) {
      before.emplace(change.key(), change.before_object());
    }
  }
  return before;
}

void Store::VisitAt(
    const ResourceType& type, std::uint64_t revision, const ObjectKey& start,
    const std::function<bool(const ObjectKey&, const Json&)>& visit) const {
  const Table& table = TableOf(type);
  const std::map<ObjectKey, ObjectPtr> before = ChangedSince(type, revision);
  auto now = table.lower_bound(start);
  auto was = before.lower_bound(start);
  for (;;) {
    const bool is_changed =
        was != before.end() && (now == table.end() || was->first <= now->first);
    if (!is_changed && now == table.end()) return;
    const ObjectKey& key = is_changed ? was->first : now->first;
    const ObjectPtr& object = is_changed ? was->second : now->second.object;
    if (object != nullptr && !visit(key, *object)) return;
    const bool is_there =
        now != table.end() && (!is_changed || now->first == was->first);
    if (is_there) ++now;
    if (is_changed) ++was;
  }
}

std::optional<ApiError> Store::ReadContinue(const std::string& token,
                                            Page& page) const {
  std::string text;
  if (!absl::WebSafeBase64Unescape(token, &text)) {
    return BadRequest("continue key is not valid: it is no base64");
  }
  const absl::StatusOr<Json> json = ParseForeignJson(text);
  const auto is = [&](const char* field, Json::value_t type) {
    const auto it = json->find(field);
    return it != json->end() && it->type() == type;
  };
  if (!json.ok() || !json->is_object() ||
      !is("rv", Json::value_t::number_unsigned) ||
      !is("ns", Json::value_t::string) || !is("start", Json::value_t::string)) {
    return BadRequest("continue key is not valid: this server did not make it");
  }
  page.continued = true;
  page.start = {(*json)["ns"].get<std::string>(),
                (*json)["start"].get<std::string>()};
  const auto revision = (*json)["rv"].get<std::uint64_t>();
  // 0 continues with whatever is there now.
  page.revision = revision == 0 ? revision_ : revision;
  if (page.revision > revision_) {
    return BadRequest("continue key is not valid: this server did not make it");
  }
  if (history_.Reaches(page.revision)) return std::nullopt;
  ApiError error = Expired(kContinueExpired);
  error.continue_token = EncodeContinue(0, page.start);
  return error;
}

std::variant<ApiError, Store::Page> Store::ReadPage(
    const ListOptions& options) const {
  if (std::vector<Cause> causes = CheckMatch(options); !causes.empty()) {
    return InvalidOptions("ListOptions", std::move(causes));
  }
  Page page;
  page.revision = revision_;
  page.limit = options.limit;
  if (options.limit < 0) return BadRequest("limit is below 0");
  if (!options.continue_token.empty()) {
    if (!options.resource_version.empty() && options.resource_version != "0") {
      return BadRequest(
          "specifying resource version is not allowed when using continue");
    }
    if (auto error = ReadContinue(options.continue_token, page)) return *error;
    return page;
  }
  std::uint64_t wanted = 0;
  if (auto error = CheckVersion(options.resource_version, wanted)) {
    return *error;
  }
  // A cache answers 0, and ignores the limit.
  if (options.resource_version == "0") page.limit = 0;
  if (options.version_match == "Exact") {
    page.revision = wanted;
    if (!history_.Reaches(wanted)) {
      return Expired(
          fmt::format("The resourceVersion for the provided list is "
                      "too old: {}",
                      wanted));
    }
  }
  return page;
}

Json Store::ListBody(const Target& target, const Page& page,
                     const Selectors& selectors) const {
  const WatchStream view(target, selectors, {});
  Json items = Json::array();
  Json metadata = {{"resourceVersion", std::to_string(page.revision)}};
  std::int64_t remaining = 0;
  VisitAt(*target.type, page.revision, page.start,
          [&](const ObjectKey& key, const Json& object) {
            if (!view.Sees(object)) return true;
            if (page.limit > 0 &&
                static_cast<std::int64_t>(items.size()) >= page.limit) {
              if (remaining++ == 0) {
                metadata["continue"] = EncodeContinue(page.revision, key);
              }
              return selectors.empty();  // Else how many follow is not said.
            }
            Json item = InVersion(*target.type, target.version, object);
            // As a real server does: the list says it for all of them.
            item.erase("kind");
            item.erase("apiVersion");
            items.push_back(std::move(item));
            return true;
          });
  if (remaining > 0 && selectors.empty()) {
    metadata["remainingItemCount"] = remaining;
  }
  return {{"kind", target.type->kind + "List"},
          {"apiVersion", target.type->ApiVersion(target.version)},
          {"metadata", std::move(metadata)},
          {"items", std::move(items)}};
}

Answer Store::List(const Target& target, const ListOptions& options) const {
  const auto selectors = ReadSelectors(*target.type, options.field_selector,
                                       options.label_selector, options.visible);
  if (const auto* error = std::get_if<ApiError>(&selectors)) {
    return Refuse(*error);
  }
  const auto page = ReadPage(options);
  if (const auto* error = std::get_if<ApiError>(&page)) return Refuse(*error);
  Answer answer;
  answer.body =
      ListBody(target, std::get<Page>(page), std::get<Selectors>(selectors));
  return answer;
}

void Store::Begin(WatchStream& stream, std::uint64_t since, bool initial,
                  bool end_bookmark) const {
  if (!initial) {
    for (auto it = history_.After(since); it != history_.end(); ++it) {
      if (&(*it)->type() == stream.target().type) stream.AddPast(*it);
    }
    return;
  }
  for (const auto& [key, entry] : TableOf(*stream.target().type)) {
    if (stream.Sees(*entry.object)) stream.AddExisting(entry.object);
  }
  if (end_bookmark) stream.AddBookmark(revision_, /*initial_end=*/true);
}

std::variant<Answer, std::shared_ptr<WatchStream>> Store::Watch(
    const Target& target, const WatchOptions& options) {
  if (std::vector<Cause> causes = CheckMatch(options); !causes.empty()) {
    return Refuse(InvalidOptions("ListOptions", std::move(causes)));
  }
  auto selectors = ReadSelectors(*target.type, options.field_selector,
                                 options.label_selector, options.visible);
  if (const auto* error = std::get_if<ApiError>(&selectors)) {
    return Refuse(*error);
  }
  std::uint64_t since = 0;  // Read even if it is too large.
  const bool streamed_list = options.send_initial_events.value_or(false);
  const std::optional<ApiError> error =
      CheckVersion(options.resource_version, since);
  // A plain watch from the future waits for it.
  if (error.has_value() && (streamed_list || error->code != 504)) {
    return Refuse(*error);
  }
  // Without a version, or with 0, a watch begins with what there is, unless it
  // asks for none of it.
  const bool initial =
      streamed_list || (since == 0 && !options.send_initial_events.has_value());
  if (since == 0) since = revision_;
  if (!initial && !history_.Reaches(since)) {
    return Refuse(Expired(
        fmt::format("too old resource version: {} ({})", since, revision_)));
  }
  auto stream = std::make_shared<WatchStream>(
      target, std::get<Selectors>(std::move(selectors)), options_.watch);
  if (!initial) stream->BeginAfter(since);
  Begin(*stream, since, initial, streamed_list);
  streams_.push_back({stream, options.bookmarks});
  return stream;
}

void Store::SendBookmarks() {
  for (const Stream& entry : streams_) {
    const std::shared_ptr<WatchStream> stream = entry.stream.lock();
    if (stream != nullptr && entry.bookmarks && stream->empty()) {
      stream->AddBookmark(revision_, /*initial_end=*/false);
    }
  }
}

}  // namespace devmgr::apistore
