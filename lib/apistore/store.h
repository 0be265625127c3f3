// SPDX-License-Identifier: Apache-2.0
//
// The objects of an API server: what it stores, answers and shows to watches.
#pragma once

#include <absl/status/status.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "apistore/answer.h"
#include "apistore/device_status.h"
#include "apistore/history.h"
#include "apistore/resource_type.h"
#include "apistore/selectors.h"
#include "apistore/watch_stream.h"

namespace devmgr::apistore {

/// Parameters of lists, as texts of the query. Absent ones are empty.
struct ListOptions {
  std::string field_selector;
  std::string label_selector;
  std::string resource_version;
  std::string version_match;
  std::string continue_token;
  std::int64_t limit = 0;  ///< 0 for all.
  Visibility visible;
};

struct WatchOptions {
  std::string field_selector;
  std::string label_selector;
  std::string resource_version;
  std::string version_match;
  std::optional<bool> send_initial_events;
  bool bookmarks = false;
  Visibility visible;
};

/// Whether a client may store `object` in the place of `old`, which is null for
/// a create; both in the stored version. `object` is null for a delete.
using Authorize =
    std::function<std::optional<ApiError>(const Json* object, const Json* old)>;

struct WriteOptions {
  std::int64_t now = 0;  ///< Seconds since 1970.
  bool dry_run = false;
  bool status = false;  ///< The subresource `status`.
  /// Of a status only this field is taken; empty for all of it.
  std::string only_status_field;
  std::string field_manager;
  bool force = false;
  Authorize authorize;  ///< Null: it may.
};

struct DeleteOptions {
  std::int64_t now = 0;
  bool dry_run = false;
  std::string uid;               ///< Preconditions; empty for none.
  std::string resource_version;  //
  std::optional<std::int64_t> grace_period_seconds;
  Authorize authorize;
};

/// A change as it is made durable. With all of them a store can be put together
/// again: of each object the latest one, and of all the highest revision.
struct StoreRecord {
  std::uint64_t revision = 0;
  std::string group;
  std::string resource;
  ObjectKey key;
  ObjectPtr object;  ///< In the stored version; null when it was deleted.
  DeviceOwners owners;
};

enum class PatchKind { kMerge, kJson, kStrategic, kApply };

/// One store of objects of the types that it is given, with one counter of
/// versions over all of them. Bodies come as others wrote them; answers are
/// ready to be sent. It has no clock and no thread, and no I/O but for
/// `persist`: time comes with the calls. What is not here: schemas, so that
/// unknown fields are kept, and permissions. Not thread-safe.
class Store {
 public:
  struct Options {
    /// The version that the store has when it is empty. One that goes on where
    /// another ended begins above its last.
    std::uint64_t first_revision = 1;
    std::size_t history_changes = 10'000;
    std::size_t history_bytes = 64u << 20;
    std::size_t max_object_bytes = 3u << 19;  ///< 1.5 MiB.
    WatchStream::Limits watch;
    /// 64 random bits, for UIDs and generated names.
    std::function<std::uint64_t()> random;
    /// Further rules of what may be stored, after those of the type.
    std::function<std::vector<Cause>(const ResourceType& type,
                                     const Json& object, const Json* old)>
        admit;
    /// Makes a change durable, before anything shows it. When it fails the
    /// change is refused (503); its revision is not used again, as what became
    /// of the record is not known.
    std::function<absl::Status(const StoreRecord& record)> persist;
  };

  Store(std::vector<ResourceType> types, Options options);
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;

  const std::vector<ResourceType>& types() const { return types_; }
  /// Null when there is none.
  const ResourceType* FindType(std::string_view group,
                               std::string_view resource) const;
  std::uint64_t revision() const { return revision_; }

  // Each takes a target with a name, except Create, List and
  // DeleteCollection. A version that is too new is refused at once (504): a
  // server that wants to wait for it asks again.
  Answer Get(const Target& target, std::string_view resource_version) const;
  Answer List(const Target& target, const ListOptions& options) const;
  Answer Create(const Target& target, Json object, const WriteOptions& options);
  Answer Put(const Target& target, Json object, const WriteOptions& options);
  Answer Patch(const Target& target, PatchKind kind, const Json& patch,
               const WriteOptions& options);
  Answer Delete(const Target& target, const DeleteOptions& options);
  Answer DeleteCollection(const Target& target, const ListOptions& selection,
                          const DeleteOptions& options);

  /// A stream with what the watch begins with; it gets what changes from now
  /// on. No change is lost or doubled in between.
  std::variant<Answer, std::shared_ptr<WatchStream>> Watch(
      const Target& target, const WatchOptions& options);
  /// A bookmark for each stream that asked for them and has nothing to send.
  void SendBookmarks();
  std::size_t watches() const;

  /// Puts an object in as it is, with its status and its UID if it has one, in
  /// the place of one of the same name. For what a server begins with.
  Answer Load(Json object, std::int64_t now);
  /// Puts in what another store made durable, without a change that anything
  /// sees. Before anything else is done with this store, whose `first_revision`
  /// is the last of the other. False for types that this store does not have,
  /// and for objects that are none.
  bool Restore(const StoreRecord& record);

  // For objects that their owner publishes here.
  /// As Load, but an object that is there keeps its UID, its times and what
  /// drivers said of its devices, whatever `object` says of them, as far as
  /// these are still allocated; one with another UID replaces it as a new
  /// object. What is equal is left alone.
  Answer Publish(Json object, std::int64_t now);
  /// Removes an object at once, whatever its finalizers. True when it was there
  /// and is gone.
  bool Remove(const ResourceType& type, const ObjectKey& key);
  /// Null when it is not there.
  ObjectPtr Find(const ResourceType& type, const ObjectKey& key) const;
  std::vector<ObjectPtr> All(const ResourceType& type) const;

  /// Forgets all changes until now: what asks for them is answered 410.
  void Compact() { history_.Compact(revision_); }

 private:
  struct Entry {
    ObjectPtr object;
    DeviceOwners owners;
  };
  using Table = std::map<ObjectKey, Entry>;
  struct Stream {
    std::weak_ptr<WatchStream> stream;
    bool bookmarks = false;
  };

  Table& TableOf(const ResourceType& type) { return tables_[&type]; }
  const Table& TableOf(const ResourceType& type) const;
  Answer Shown(const Target& target, const Json& object, int code = 200) const;

  // Writing.
  std::optional<ApiError> CheckBody(const Target& target, Json& object) const;
  std::optional<ApiError> CheckNewName(const Target& target, Json& object);
  std::optional<ApiError> CheckAdmission(const ResourceType& type, Json& object,
                                         const Json* old,
                                         std::int64_t now) const;
  std::optional<ApiError> CheckPut(const Target& target, const Json& object,
                                   const Json& old) const;
  Answer Update(const Target& target, Json object, DeviceOwners owners,
                const WriteOptions& options);
  /// Server-side apply of `body` to `object`, both in the version of the
  /// target.
  std::optional<ApiError> Apply(const Target& target, const Json& body,
                                const WriteOptions& options, Json& object,
                                DeviceOwners& owners) const;
  ApiError NotHere(const Target& target) const;
  std::optional<ApiError> CheckPreconditions(
      const Target& target, const Json& object,
      const DeleteOptions& options) const;
  Answer DeleteOne(const Target& target, const DeleteOptions& options);
  struct Committed {
    std::optional<ApiError> error;
    ObjectPtr object;  ///< What is stored now; null when it is gone.
  };
  /// Stores `after`, or removes the object when it is null, with the next
  /// version; streams get the change. What `after` holds gets the version.
  Committed Commit(const ResourceType& type, const ObjectKey& key,
                   std::optional<Json> after, DeviceOwners owners);
  Answer ShowCommitted(const Target& target, const Committed& committed,
                       int code = 200) const;
  /// Finds the type of an object of others, and checks its body and name.
  std::optional<ApiError> ReadLoaded(Json& object, Target& target);
  void SetSystemFields(const ResourceType& type, Json& object,
                       std::int64_t now);

  // Reading.
  std::optional<ApiError> CheckVersion(std::string_view text,
                                       std::uint64_t& revision) const;
  std::variant<ApiError, Selectors> ReadSelectors(const ResourceType& type,
                                                  const std::string& fields,
                                                  const std::string& labels,
                                                  Visibility visible) const;
  /// What changed after `revision`, which is in the history, as it was then;
  /// null for what was not there.
  std::map<ObjectKey, ObjectPtr> ChangedSince(const ResourceType& type,
                                              std::uint64_t revision) const;
  /// The objects of a type as they were at `revision`, from `start` on, until
  /// `visit` returns false. Costs what it visits and what changed since then.
  void VisitAt(
      const ResourceType& type, std::uint64_t revision, const ObjectKey& start,
      const std::function<bool(const ObjectKey&, const Json&)>& visit) const;
  struct Page {
    std::uint64_t revision = 0;
    ObjectKey start;
    std::int64_t limit = 0;
    bool continued = false;
  };
  std::variant<ApiError, Page> ReadPage(const ListOptions& options) const;
  std::optional<ApiError> ReadContinue(const std::string& token,
                                       Page& page) const;
  Json ListBody(const Target& target, const Page& page,
                const Selectors& selectors) const;
  void Begin(WatchStream& stream, std::uint64_t since, bool initial,
             bool end_bookmark) const;

  const std::vector<ResourceType> types_;
  const Options options_;
  std::uint64_t revision_ = 0;
  std::map<const ResourceType*, Table> tables_;
  History history_;
  std::vector<Stream> streams_;
};

}  // namespace devmgr::apistore
