// SPDX-License-Identifier: Apache-2.0
//
// The latest changes of a store, for watches that begin in the past and for
// lists of an earlier moment.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "apistore/object_meta.h"
#include "apistore/resource_type.h"

namespace devmgr::apistore {

using ObjectPtr = std::shared_ptr<const Json>;

/// One change of one object. What a watch is sent of it is encoded once and
/// shared by all streams.
class Change {
 public:
  enum class Form { kAdded, kModified, kDeleted };

  Change(const ResourceType& type, std::uint64_t revision, ObjectPtr before,
         ObjectPtr after);

  const ResourceType& type() const { return type_; }
  std::uint64_t revision() const { return revision_; }
  const ObjectKey& key() const { return key_; }
  const Json* before() const { return before_.get(); }
  const ObjectPtr& before_object() const { return before_; }
  const Json* after() const { return after_.get(); }
  /// How many bytes of JSON it keeps, about.
  std::size_t bytes() const { return bytes_; }

  /// The event as one line. A deleted object is shown in its last state, with
  /// the version of the deletion.
  std::shared_ptr<const std::string> Encoded(Form form,
                                             std::size_t version) const;

 private:
  const ResourceType& type_;
  const std::uint64_t revision_;
  const ObjectPtr before_;
  const ObjectPtr after_;
  ObjectKey key_;
  std::size_t bytes_ = 0;
  mutable std::map<std::pair<Form, std::size_t>,
                   std::shared_ptr<const std::string>>
      encoded_;
};

/// `object` as it is shown in that version of its type.
Json InVersion(const ResourceType& type, std::size_t version, Json object);
/// One line of a watch.
std::string EventText(std::string_view event, const Json& object);

class History {
 public:
  History(std::size_t max_changes, std::size_t max_bytes)
      : max_changes_(max_changes), max_bytes_(max_bytes) {}

  void Add(std::shared_ptr<const Change> change);
  /// Forgets all changes up to that revision.
  void Compact(std::uint64_t revision);
  /// All changes after `revision` are here.
  bool Reaches(std::uint64_t revision) const { return revision >= forgotten_; }
  /// For `Reaches`: nothing before this is known.
  void BeginAt(std::uint64_t revision) { forgotten_ = revision; }

  /// Changes after `revision`, in order.
  std::deque<std::shared_ptr<const Change>>::const_iterator After(
      std::uint64_t revision) const;
  std::deque<std::shared_ptr<const Change>>::const_iterator end() const {
    return changes_.end();
  }
  std::size_t size() const { return changes_.size(); }

 private:
  void DropOldest();

  const std::size_t max_changes_;
  const std::size_t max_bytes_;
  std::deque<std::shared_ptr<const Change>> changes_;
  std::size_t bytes_ = 0;
  std::uint64_t forgotten_ = 0;  ///< Revision of the newest that is gone.
};

}  // namespace devmgr::apistore
