// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <utility>

namespace devmgr {

/// A value that several own, on whichever threads, and that one may change when
/// no other has it: the building block of values whose copies share what they
/// have in common. Unlike std::shared_ptr it can say so for sure: what others
/// read before they let go has happened by then.
template <typename T>
class CopyOnWrite {
 public:
  CopyOnWrite() = default;
  template <typename... Args>
  static CopyOnWrite Make(Args&&... args) {
    return CopyOnWrite(new Box(std::forward<Args>(args)...));
  }
  CopyOnWrite(const CopyOnWrite& other) : box_(other.box_) {
    if (box_ != nullptr) box_->owners.fetch_add(1, std::memory_order_relaxed);
  }
  CopyOnWrite(CopyOnWrite&& other) noexcept
      : box_(std::exchange(other.box_, nullptr)) {}
  CopyOnWrite& operator=(CopyOnWrite other) noexcept {
    std::swap(box_, other.box_);
    return *this;
  }
  ~CopyOnWrite() {
    if (box_ != nullptr &&
        box_->owners.fetch_sub(1, std::memory_order_acq_rel) == 1) {
      delete box_;
    }
  }

  /// Null when it has no value.
  const T* get() const { return box_ != nullptr ? &box_->value : nullptr; }
  const T& operator*() const { return box_->value; }
  const T* operator->() const { return &box_->value; }
  explicit operator bool() const { return box_ != nullptr; }

  /// The value, to be changed; a copy of it where others have it, too. There is
  /// one.
  T& Edit() {
    if (box_->owners.load(std::memory_order_acquire) != 1) {
      *this = Make(std::as_const(box_->value));
    }
    return box_->value;
  }

 private:
  struct Box {
    template <typename... Args>
    explicit Box(Args&&... args) : value(std::forward<Args>(args)...) {}
    std::atomic<std::uint32_t> owners{1};
    T value;
  };

  explicit CopyOnWrite(Box* box) : box_(box) {}

  Box* box_ = nullptr;
};

}  // namespace devmgr
