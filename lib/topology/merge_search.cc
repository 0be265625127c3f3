// SPDX-License-Identifier: Apache-2.0
#include "topology/merge_search.h"

#include <algorithm>
#include <utility>

namespace devmgr::topology {
namespace {

/// Masks that are not empty.
class MaskSet {
 public:
  /// Whether it was not there before.
  bool Insert(NumaMask mask) {
    if (2 * (size_ + 1) > slots_.size()) Grow();
    std::uint64_t& slot = SlotOf(mask.bits());
    if (slot != 0) return false;
    slot = mask.bits();
    ++size_;
    return true;
  }

 private:
  std::uint64_t& SlotOf(std::uint64_t bits) {
    const std::size_t last = slots_.size() - 1;
    std::size_t at = (bits * 0x9E3779B97F4A7C15U >> 20) & last;
    while (slots_[at] != 0 && slots_[at] != bits) at = (at + 1) & last;
    return slots_[at];
  }

  void Grow() {
    const auto before =
        std::exchange(slots_, std::vector<std::uint64_t>(std::max<std::size_t>(
                                  64, slots_.size() * 4)));
    for (const std::uint64_t bits : before) {
      if (bits != 0) SlotOf(bits) = bits;
    }
  }

  std::vector<std::uint64_t> slots_;  ///< A power of two; 0: free.
  std::size_t size_ = 0;
};

void SortUnique(std::vector<NumaMask>& masks) {
  std::sort(masks.begin(), masks.end(),
            [](NumaMask a, NumaMask b) { return a.bits() < b.bits(); });
  masks.erase(std::unique(masks.begin(), masks.end()), masks.end());
}

/// Branch and bound, once for each size that the result may have, the best size
/// first. What was laid over each other is met once per list.
class MaskSearch {
 public:
  explicit MaskSearch(CommonMaskQuestion question)
      : all_(question.all),
        best_count_(question.best_count),
        order_(question.order),
        limit_(question.steps),
        lists_(std::move(question.lists)) {}

  CommonMask Run() {
    if (Simplify()) {
      TryGreedily();
      RunSizes();
    }
    return {best_, !exhausted_, steps_};
  }

 private:
  struct Choice {
    NumaMask mask;
    MaskOrder::Key bound;  ///< Of what can come of it.
  };

  /// Lists with one mask only narrow all others. False: nothing is common.
  bool Simplify() {
    for (bool narrowed = true; narrowed;) {
      narrowed = false;
      for (auto& list : lists_) {
        for (NumaMask& mask : list) mask = mask & all_;
        SortUnique(list);
        if (!list.empty() && list.front().empty()) list.erase(list.begin());
        if (list.empty()) return false;
        if (list.size() > 1 || list.front() == all_) continue;
        all_ = list.front();
        narrowed = true;
      }
    }
    std::erase_if(lists_, [](const auto& list) { return list.size() == 1; });
    std::sort(lists_.begin(), lists_.end(),
              [](const auto& a, const auto& b) { return a.size() < b.size(); });
    return !all_.empty();
  }

  /// For a search that reaches its limit early.
  void TryGreedily() {
    NumaMask common = all_;
    for (const auto& list : lists_) {
      NumaMask widest;
      for (const NumaMask mask : list) {
        if ((mask & common).Count() > widest.Count()) widest = mask & common;
      }
      common = widest;
    }
    if (!common.empty()) Offer(common);
  }

  void RunSizes() {
    const int most = std::max(best_count_, 1);
    for (size_ = most; size_ > 0 && !exhausted_; --size_) {
      Prepare();
      if (!hopeless_ && !exhausted_) Descend(0, all_);
      // Sizes below are worse, and so is what is larger than `best_count_`.
      if (best_ && best_->Count() == size_) return;
    }
  }

  /// Of each list the masks that have `size_` nodes at least.
  void Prepare() {
    choices_.assign(lists_.size(), {});
    visited_.assign(lists_.size(), {});
    within_.assign(lists_.size() + 1, all_);
    hopeless_ = all_.Count() < size_;
    for (std::size_t i = lists_.size(); i-- > 0;) {
      NumaMask any;
      for (const NumaMask mask : lists_[i]) {
        if (mask.Count() < size_) continue;
        any = any | mask;
        choices_[i].push_back({mask, BoundOf(mask)});
        if (exhausted_) return;
      }
      std::sort(
          choices_[i].begin(), choices_[i].end(),
          [](const Choice& a, const Choice& b) { return a.bound < b.bound; });
      within_[i] = within_[i + 1] & any;
      hopeless_ = hopeless_ || within_[i].Count() < size_;
    }
  }

  void Count(int steps) {
    steps_ += static_cast<std::uint64_t>(steps);
    exhausted_ = exhausted_ || steps_ > limit_;
  }

  MaskOrder::Key BoundOf(NumaMask mask) {
    Count(order_.has_distances() ? mask.Count() : 1);
    return order_.Bound(mask, size_);
  }

  bool BestHasSize() const { return best_ && best_->Count() == size_; }

  /// Can nothing better than the best come of what has this bound?
  bool Beaten(const MaskOrder::Key& bound) const {
    return BestHasSize() && bound >= best_key_;
  }

  void Descend(std::size_t level, NumaMask common) {
    if (level == lists_.size()) {
      Offer(common);
      return;
    }
    for (const Choice& choice : choices_[level]) {
      if (Beaten(choice.bound)) return;
      Count(1);
      if (exhausted_) return;
      const NumaMask next = common & choice.mask;
      const NumaMask within = next & within_[level + 1];
      if (within.Count() < size_ || !visited_[level].Insert(next)) continue;
      if (BestHasSize() && Beaten(BoundOf(within))) continue;
      Descend(level + 1, next);
    }
  }

  /// By size alone; less is better.
  std::pair<int, int> RankOf(NumaMask mask) const {
    const int count = mask.Count();
    if (count < best_count_) return {1, -count};
    return {count == best_count_ ? 0 : 2, count};
  }

  void Offer(NumaMask mask) {
    if (best_ && RankOf(mask) > RankOf(*best_)) return;
    const MaskOrder::Key key = order_.Of(mask);
    if (best_ && RankOf(mask) == RankOf(*best_) && key >= best_key_) return;
    best_ = mask;
    best_key_ = key;
  }

  NumaMask all_;
  const int best_count_;
  const MaskOrder& order_;
  const std::uint64_t limit_;
  std::vector<std::vector<NumaMask>> lists_;

  int size_ = 0;
  std::vector<std::vector<Choice>> choices_;
  std::vector<MaskSet> visited_;
  /// By list: what the masks of it and of all later ones lie in.
  std::vector<NumaMask> within_;
  bool hopeless_ = false;

  std::optional<NumaMask> best_;
  MaskOrder::Key best_key_;
  std::uint64_t steps_ = 0;
  bool exhausted_ = false;
};

}  // namespace

CommonMask FindCommonMask(CommonMaskQuestion question) {
  return MaskSearch(std::move(question)).Run();
}

}  // namespace devmgr::topology
