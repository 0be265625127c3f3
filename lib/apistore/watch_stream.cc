// SPDX-License-Identifier: Apache-2.0
#include "apistore/watch_stream.h"

#include <utility>

namespace devmgr::apistore {

WatchStream::WatchStream(Target target, Selectors selectors, Limits limits)
    : target_(std::move(target)),
      selectors_(std::move(selectors)),
      limits_(limits) {}

bool WatchStream::Sees(const Json& object) const {
  if (!target_.ns.empty() && MetaText(object, "namespace") != target_.ns) {
    return false;
  }
  if (!target_.name.empty() && MetaText(object, "name") != target_.name) {
    return false;
  }
  return selectors_.Matches(object);
}

bool WatchStream::FormOf(const Change& change, Change::Form& form) const {
  const bool before = change.before() != nullptr && Sees(*change.before());
  const bool after = change.after() != nullptr && Sees(*change.after());
  if (before && after) form = Change::Form::kModified;
  if (!before && after) form = Change::Form::kAdded;
  if (before && !after) form = Change::Form::kDeleted;
  return before || after;
}

void WatchStream::Push(Item item) {
  const bool was_empty = items_.empty();
  items_.push_back(std::move(item));
  if (was_empty && ready_) ready_();
}

void WatchStream::AddExisting(ObjectPtr object) {
  Item item;
  item.object = std::move(object);
  Push(std::move(item));
}

void WatchStream::AddPast(std::shared_ptr<const Change> change) {
  Item item;
  if (!FormOf(*change, item.form)) return;
  item.change = std::move(change);
  Push(std::move(item));
}

void WatchStream::Offer(const Change& change) {
  if (overflowed_ || change.revision() <= since_) return;
  Item item;
  if (!FormOf(change, item.form)) return;
  item.text = change.Encoded(item.form, target_.version);
  item.counted = true;
  ++counted_events_;
  counted_bytes_ += item.text->size();
  if (counted_events_ > limits_.events || counted_bytes_ > limits_.bytes) {
    overflowed_ = true;
    items_.clear();
    counted_events_ = counted_bytes_ = 0;
    if (ready_) ready_();
    return;
  }
  Push(std::move(item));
}

void WatchStream::AddBookmark(std::uint64_t revision, bool initial_end) {
  if (overflowed_ || revision < since_) return;
  Json metadata = {{"resourceVersion", std::to_string(revision)},
                   {"creationTimestamp", nullptr}};
  if (initial_end) {
    metadata["annotations"] = {{"k8s.io/initial-events-end", "true"}};
  }
  const Json object = {
      {"kind", target_.type->kind},
      {"apiVersion", target_.type->ApiVersion(target_.version)},
      {"metadata", std::move(metadata)}};
  Item item;
  item.text =
      std::make_shared<const std::string>(EventText("BOOKMARK", object));
  Push(std::move(item));
}

std::shared_ptr<const std::string> WatchStream::TextOf(const Item& item) const {
  if (item.text != nullptr) return item.text;
  if (item.change != nullptr) {
    return item.change->Encoded(item.form, target_.version);
  }
  return std::make_shared<const std::string>(EventText(
      "ADDED", InVersion(*target_.type, target_.version, *item.object)));
}

std::string WatchStream::Take(std::size_t max_bytes) {
  std::string texts;
  while (!items_.empty()) {
    const Item& item = items_.front();
    const std::shared_ptr<const std::string> text = TextOf(item);
    if (!texts.empty() && texts.size() + text->size() > max_bytes) break;
    texts += *text;
    if (item.counted) {
      --counted_events_;
      counted_bytes_ -= text->size();
    }
    items_.pop_front();
  }
  return texts;
}

}  // namespace devmgr::apistore
