// SPDX-License-Identifier: Apache-2.0
#include "apistore/history.h"

#include <algorithm>

namespace devmgr::apistore {
namespace {

const char* WordOf(Change::Form form) {
  switch (form) {
    case Change::Form::kAdded:
      return "ADDED";
    case Change::Form::kModified:
      return "MODIFIED";
    case Change::Form::kDeleted:
      return "DELETED";
  }
  return "ERROR";
}

}  // namespace

Json InVersion(const ResourceType& type, std::size_t version, Json object) {
  const ServedVersion& served = type.versions[version];
  if (served.from_stored != nullptr) served.from_stored(object);
  object["apiVersion"] = type.ApiVersion(version);
  return object;
}

std::string EventText(std::string_view event, const Json& object) {
  std::string text = R"({"type":")";
  text += event;
  text += R"(","object":)";
  text += Dump(object);
  text += "}\n";
  return text;
}

Change::Change(const ResourceType& type, std::uint64_t revision,
               ObjectPtr before, ObjectPtr after)
    : type_(type),
      revision_(revision),
      before_(std::move(before)),
      after_(std::move(after)),
      key_(apistore::KeyOf(after_ != nullptr ? *after_ : *before_)),
      // What was before is what the change before it keeps.
      bytes_(after_ != nullptr ? Dump(*after_).size() : 0) {}

std::shared_ptr<const std::string> Change::Encoded(Form form,
                                                   std::size_t version) const {
  std::shared_ptr<const std::string>& text = encoded_[{form, version}];
  if (text == nullptr) {
    Json object = form == Form::kDeleted ? *before_ : *after_;
    object["metadata"]["resourceVersion"] = std::to_string(revision_);
    text = std::make_shared<const std::string>(
        EventText(WordOf(form), InVersion(type_, version, std::move(object))));
  }
  return text;
}

void History::Add(std::shared_ptr<const Change> change) {
  bytes_ += change->bytes();
  changes_.push_back(std::move(change));
  while (changes_.size() > max_changes_ ||
         (bytes_ > max_bytes_ && changes_.size() > 1)) {
    DropOldest();
  }
}

void History::DropOldest() {
  forgotten_ = changes_.front()->revision();
  bytes_ -= changes_.front()->bytes();
  changes_.pop_front();
}

void History::Compact(std::uint64_t revision) {
  while (!changes_.empty() && changes_.front()->revision() <= revision) {
    DropOldest();
  }
  forgotten_ = std::max(forgotten_, revision);
}

std::deque<std::shared_ptr<const Change>>::const_iterator History::After(
    std::uint64_t revision) const {
  return std::upper_bound(
      changes_.begin(), changes_.end(), revision,
      [](std::uint64_t value, const std::shared_ptr<const Change>& change) {
        return value < change->revision();
      });
}

}  // namespace devmgr::apistore
