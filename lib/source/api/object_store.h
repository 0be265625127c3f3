// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <devmgr/manifests.h>
#include <devmgr/persistent_map.h>
#include <devmgr/status_types.h>

#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "source/api/collection.h"

namespace devmgr::apiserver {

/// One object of a collection, as the server has it. Exactly one of the three
/// says what it is. Immutable.
struct StoredObject {
  ObjectName name;
  std::string uid;
  std::string resource_version;
  std::shared_ptr<const Object> object;
  std::shared_ptr<const MalformedPod> malformed;
  /// Why it cannot be decoded.
  std::string problem;
  /// What is wrong with an object that is used nevertheless: an expression that
  /// does not compile here. The server has accepted it, so that it may be of a
  /// newer version.
  std::string remark;
};

/// Decodes the text of one object of `collection`; the text need not have
/// `kind` and `apiVersion`. An object without a UID has a problem.
StoredObject DecodeStored(const Collection& collection, std::string_view text);

struct ObjectChange {
  enum class Kind { kUpsert, kDelete };
  Kind kind = Kind::kUpsert;
  /// Of kDelete: the server reported it, rather than that a list lacked the
  /// object.
  bool is_reported = false;
  /// For kDelete: as it was known last.
  std::shared_ptr<const StoredObject> object;
};

/// The objects of one collection by UID, never by name: an object that was
/// created again is another one. Lists are gathered beside them, and take their
/// place in one step. An object that turns undecodable keeps what it was, and
/// is reported. Thread-bound.
class ObjectStore {
 public:
  using Objects =
      PersistentMap<std::string, std::shared_ptr<const StoredObject>>;

  explicit ObjectStore(Collection collection)
      : collection_(std::move(collection)) {}

  void BeginList() { listed_.clear(); }
  void AddListed(std::string_view text);
  /// What was listed is all there is.
  void EndList();

  void Upsert(std::string_view text);
  void Delete(std::string_view text);

  const Objects& objects() const { return objects_; }
  /// By UID: why the object cannot be decoded as it is now, and remarks.
  const std::map<std::string, ObjectProblem>& problems() const {
    return problems_;
  }
  /// Whether each object is known, be it as it was.
  bool IsDecoded() const;
  /// Since the last call, in order.
  std::vector<ObjectChange> TakeChanges();

 private:
  std::shared_ptr<const StoredObject> Decode(std::string_view text);
  void Put(const std::shared_ptr<const StoredObject>& object);
  void Erase(const std::string& uid, bool is_reported);

  const Collection collection_;
  Objects objects_;
  Objects listed_;
  std::map<std::string, ObjectProblem> problems_;
  std::vector<ObjectChange> changes_;
};

}  // namespace devmgr::apiserver
