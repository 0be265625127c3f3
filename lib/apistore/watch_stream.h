// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>

#include "apistore/history.h"
#include "apistore/selectors.h"

namespace devmgr::apistore {

/// What one watch still has to be sent. Its owner takes it bit by bit, as fast
/// as its client reads; the store puts in. What the watch begins with (objects
/// that exist, changes of the past) is kept by reference; of what comes
/// afterwards a bounded number of events waits. Dropping the stream ends it.
/// Not thread-safe; lives on the thread of its store.
class WatchStream {
 public:
  struct Limits {
    std::size_t events = 1024;
    std::size_t bytes = 8u << 20;
  };

  WatchStream(Target target, Selectors selectors, Limits limits);

  /// Whole events, one per line, up to about `max_bytes` and one at least when
  /// there is one.
  std::string Take(std::size_t max_bytes);
  bool empty() const { return items_.empty(); }
  /// More came than the stream may keep: it gets nothing any more. Its client
  /// has to list again, or to watch from where it got to.
  bool overflowed() const { return overflowed_; }

  /// Called, from within a call of the store, when something came into an empty
  /// stream, and when it overflowed. It must not call the store.
  void OnReady(std::function<void()> ready) { ready_ = std::move(ready); }

  // For the store.
  /// Changes up to that revision are not shown, nor a bookmark below it, which
  /// would take the client back to before changes that it never gets.
  void BeginAfter(std::uint64_t revision) { since_ = revision; }
  const Target& target() const { return target_; }
  const Selectors& selectors() const { return selectors_; }
  bool Sees(const Json& object) const;
  void AddExisting(ObjectPtr object);
  /// A change of the past: does not count against the limits.
  void AddPast(std::shared_ptr<const Change> change);
  /// A change of now.
  void Offer(const Change& change);
  /// A bookmark; `initial_end` says that all objects that existed were sent.
  void AddBookmark(std::uint64_t revision, bool initial_end);

 private:
  struct Item {
    std::shared_ptr<const std::string> text;
    ObjectPtr object;
    std::shared_ptr<const Change> change;
    Change::Form form = Change::Form::kAdded;
    bool counted = false;
  };

  /// Whether the watch shows the change, and as what.
  bool FormOf(const Change& change, Change::Form& form) const;
  void Push(Item item);
  std::shared_ptr<const std::string> TextOf(const Item& item) const;

  const Target target_;
  const Selectors selectors_;
  const Limits limits_;
  std::uint64_t since_ = 0;
  std::deque<Item> items_;
  std::size_t counted_events_ = 0;
  std::size_t counted_bytes_ = 0;
  bool overflowed_ = false;
  std::function<void()> ready_;
};

}  // namespace devmgr::apistore
