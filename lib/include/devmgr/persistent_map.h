// SPDX-License-Identifier: Apache-2.0
//
// Persistent ordered maps and sets: a copy takes constant time and shares its
// nodes with the original, and later changes of either do not touch the other.
#pragma once

#include <devmgr/copy_on_write.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <iterator>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace devmgr {

/// A balanced tree (AVL) of shared nodes. A change copies the nodes on the path
/// to it that other trees have, too, and changes its own in their places: it
/// costs the logarithm of the size, as a look-up does. A tree belongs to one
/// thread at a time; its copies may be on others. What iterators and references
/// point to lasts until this tree is changed or destroyed.
///
/// `KeyOf` gives the key of an entry, `Less` orders keys; with
/// `Less::is_transparent` whatever compares with a key is looked up by itself.
/// A `Less` may also have `Order`, which says in one look at both keys whether
/// the first one comes before (negative), after (positive), or is the same.
template <typename Entry, typename KeyOf, typename Less>
class PersistentTree {
  struct Node;

 public:
  using value_type = Entry;
  using key_type = std::decay_t<std::invoke_result_t<KeyOf, const Entry&>>;
  /// Of a tree of 2^32 entries.
  static constexpr std::size_t kMostHeight = 48;

  class const_iterator {
   public:
    using iterator_category = std::forward_iterator_tag;
    using value_type = Entry;
    using difference_type = std::ptrdiff_t;
    using pointer = const Entry*;
    using reference = const Entry&;

    const_iterator() = default;
    const_iterator(const const_iterator& other) { *this = other; }
    const_iterator& operator=(const const_iterator& other) {
      depth_ = other.depth_;
      std::copy_n(other.path_.begin(), depth_, path_.begin());
      return *this;
    }

    reference operator*() const { return Top()->entry; }
    pointer operator->() const { return &Top()->entry; }
    const_iterator& operator++() {
      const Node* node = Top()->right.get();
      --depth_;
      PushLeft(node);
      return *this;
    }
    const_iterator operator++(int) {
      const_iterator before = *this;
      ++*this;
      return before;
    }
    friend bool operator==(const const_iterator& a, const const_iterator& b) {
      return a.depth_ == 0 ? b.depth_ == 0
                           : b.depth_ != 0 && a.Top() == b.Top();
    }

   private:
    friend class PersistentTree;

    const Node* Top() const {
      assert(depth_ > 0);
      return path_[depth_ - 1];
    }
    void Push(const Node* node) { path_[depth_++] = node; }
    void PushLeft(const Node* node) {
      for (; node != nullptr; node = node->left.get()) Push(node);
    }

    std::size_t depth_ = 0;
    /// The entry, and above it those that come after it.
    std::array<const Node*, kMostHeight> path_;
  };
  using iterator = const_iterator;

  const_iterator begin() const {
    const_iterator first;
    first.PushLeft(root_.get());
    return first;
  }
  const_iterator end() const { return {}; }
  bool empty() const { return size_ == 0; }
  std::size_t size() const { return size_; }

  /// The last entry. There is one.
  const Entry& back() const {
    const Node* node = root_.get();
    assert(node != nullptr);
    while (node->right) node = node->right.get();
    return node->entry;
  }

  template <typename SomeKey = key_type>
  const_iterator lower_bound(const SomeKey& key) const {
    return Bound(
        [&](const Entry& entry) { return Less()(KeyOf()(entry), key); });
  }
  template <typename SomeKey = key_type>
  const_iterator upper_bound(const SomeKey& key) const {
    return Bound(
        [&](const Entry& entry) { return !Less()(key, KeyOf()(entry)); });
  }
  template <typename SomeKey = key_type>
  std::pair<const_iterator, const_iterator> equal_range(
      const SomeKey& key) const {
    return {lower_bound(key), upper_bound(key)};
  }
  template <typename SomeKey = key_type>
  const_iterator find(const SomeKey& key) const {
    const_iterator found = lower_bound(key);
    return found == end() || Less()(key, KeyOf()(*found)) ? end() : found;
  }
  template <typename SomeKey = key_type>
  bool contains(const SomeKey& key) const {
    return Look(key) != nullptr;
  }
  template <typename SomeKey = key_type>
  std::size_t count(const SomeKey& key) const {
    return contains(key) ? 1 : 0;
  }

  void clear() {
    root_ = {};
    size_ = 0;
  }

  /// Both are the same by themselves, not only in what they hold: nothing was
  /// changed since one was copied from the other.
  bool SharesAllWith(const PersistentTree& other) const {
    return root_.get() == other.root_.get();
  }

  /// Calls `visit(const Entry* before, const Entry* now)` for each key whose
  /// entry is another one than in `before`, in the order of keys; null where
  /// there is none. What both have in common is passed over: after few changes
  /// of a copy it costs the logarithm of the size for each of them.
  template <typename Visit>
  void VisitChangesSince(const PersistentTree& before, Visit visit) const {
    Compare(before, *this, [&](const Entry* was, const Entry* is) {
      visit(was, is);
      return true;
    });
  }

  friend bool operator==(const PersistentTree& a, const PersistentTree& b) {
    return a.size_ == b.size_ &&
           Compare(a, b, [](const Entry*, const Entry*) { return false; });
  }

  /// How many were erased of those for which `is_to_go(entry)` holds.
  template <typename Predicate>
  friend std::size_t erase_if(PersistentTree& tree, Predicate is_to_go) {
    std::vector<key_type> keys;
    for (const Entry& entry : tree) {
      if (is_to_go(entry)) keys.push_back(KeyOf()(entry));
    }
    for (const key_type& key : keys) tree.Remove(key);
    return keys.size();
  }

 protected:
  /// Null when there is none.
  template <typename SomeKey = key_type>
  const Entry* Look(const SomeKey& key) const {
    for (const Node* node = root_.get(); node != nullptr;) {
      const int order = Order(key, KeyOf()(node->entry));
      if (order == 0) return &node->entry;
      node = order < 0 ? node->left.get() : node->right.get();
    }
    return nullptr;
  }

  /// In place of the entry of the same key, if there is one. False: there was.
  bool Put(Entry entry) {
    const std::size_t before = size_;
    Put(root_, std::move(entry));
    return size_ != before;
  }

  /// The entry of `key`, to be changed but for its key; what `make` gives where
  /// there was none. The reference lasts until the tree is changed again.
  template <typename SomeKey, typename Make>
  Entry& Edit(const SomeKey& key, const Make& make) {
    return Edit(root_, key, make);
  }

  template <typename SomeKey = key_type>
  std::size_t Remove(const SomeKey& key) {
    if (Look(key) == nullptr) return 0;
    Remove(root_, key);
    --size_;
    return 1;
  }

 private:
  using Ref = CopyOnWrite<Node>;

  struct Node {
    explicit Node(Entry&& value) : entry(std::move(value)) {}
    template <typename Make>
    Node(std::in_place_t, const Make& make) : entry(make()) {}
    std::uint32_t height = 1;
    Ref left;
    Ref right;
    Entry entry;
  };

  /// Walks a tree in order, and passes over what it need not look into.
  class Cursor {
   public:
    explicit Cursor(const PersistentTree& tree) {
      Push(tree.root_.get(), true);
    }
    bool at_end() const { return depth_ == 0; }
    /// Of a whole subtree, else of an entry alone.
    const Node* node() const { return path_[depth_ - 1].node; }
    bool is_whole() const { return path_[depth_ - 1].is_whole; }
    std::uint32_t height() const { return node()->height; }
    void Pass() { --depth_; }
    /// From a whole subtree to the first of its parts.
    void Open() {
      const Node* const opened = node();
      Pass();
      Push(opened->right.get(), true);
      Push(opened, false);
      Push(opened->left.get(), true);
    }

   private:
    struct Item {
      const Node* node;
      bool is_whole;
    };
    void Push(const Node* node, bool is_whole) {
      if (node != nullptr) path_[depth_++] = {node, is_whole};
    }
    std::size_t depth_ = 0;
    std::array<Item, 2 * kMostHeight + 1> path_;
  };

  /// `visit(before, now)` as above; false: it is not to go on, nor does this.
  template <typename Visit>
  static bool Compare(const PersistentTree& before, const PersistentTree& now,
                      Visit visit) {
    Cursor a(before);
    Cursor b(now);
    while (!a.at_end() || !b.at_end()) {
      if (OpenOrPass(a, b)) continue;
      const int order = a.at_end()   ? 1
                        : b.at_end() ? -1
                                     : Order(KeyOf()(a.node()->entry),
                                             KeyOf()(b.node()->entry));
      const Entry* const was = order <= 0 ? &a.node()->entry : nullptr;
      const Entry* const is = order >= 0 ? &b.node()->entry : nullptr;
      if (order <= 0) a.Pass();
      if (order >= 0) b.Pass();
      if (order == 0 && *was == *is) continue;
      if (!visit(was, is)) return false;
    }
    return true;
  }
  /// False when what remains to be done is to compare two entries. The higher
  /// of two subtrees is opened first: thus both come to one that they share.
  static bool OpenOrPass(Cursor& a, Cursor& b) {
    const bool whole_a = !a.at_end() && a.is_whole();
    const bool whole_b = !b.at_end() && b.is_whole();
    if (!a.at_end() && !b.at_end() && a.node() == b.node() &&
        whole_a == whole_b) {
      a.Pass();
      b.Pass();
      return true;
    }
    const std::uint32_t height_a = whole_a ? a.height() : 0;
    const std::uint32_t height_b = whole_b ? b.height() : 0;
    if (whole_a && height_a >= height_b) a.Open();
    if (whole_b && height_b >= height_a) b.Open();
    return whole_a || whole_b;
  }

  template <typename A, typename B>
  static int Order(const A& a, const B& b) {
    if constexpr (requires { Less().Order(a, b); }) {
      return Less().Order(a, b);
    } else {
      return Less()(a, b) ? -1 : Less()(b, a) ? 1 : 0;
    }
  }

  /// `is_before(entry)`: it comes before the bound.
  template <typename IsBefore>
  const_iterator Bound(IsBefore is_before) const {
    const_iterator bound;
    for (const Node* node = root_.get(); node != nullptr;) {
      if (is_before(node->entry)) {
        node = node->right.get();
      } else {
        bound.Push(node);
        node = node->left.get();
      }
    }
    return bound;
  }

  static std::uint32_t HeightOf(const Ref& node) {
    return node ? node->height : 0;
  }
  static void Measure(Node& node) {
    node.height = 1 + std::max(HeightOf(node.left), HeightOf(node.right));
  }

  /// The child `up` takes the place of its parent.
  template <Ref Node::*up, Ref Node::*down>
  static void Rotate(Ref& root) {
    Ref top = std::move(root.Edit().*up);
    root.Edit().*up = std::move(top.Edit().*down);
    Measure(root.Edit());
    top.Edit().*down = std::move(root);
    Measure(top.Edit());
    root = std::move(top);
  }

  /// One side is higher than the other by two at most.
  static void Balance(Ref& root) {
    const std::uint32_t left = HeightOf(root->left);
    const std::uint32_t right = HeightOf(root->right);
    if (left > right + 1) {
      Lower<&Node::left, &Node::right>(root);
    } else if (right > left + 1) {
      Lower<&Node::right, &Node::left>(root);
    } else {
      Measure(root.Edit());
    }
  }
  /// The side `high` is too high.
  template <Ref Node::*high, Ref Node::*low>
  static void Lower(Ref& root) {
    Ref& child = root.Edit().*high;
    if (HeightOf(*child.*low) > HeightOf(*child.*high)) {
      Rotate<low, high>(child);
    }
    Rotate<high, low>(root);
  }

  void Put(Ref& node, Entry&& entry) {
    if (!node) {
      ++size_;
      node = Ref::Make(std::move(entry));
      return;
    }
    const int order = Order(KeyOf()(entry), KeyOf()(node->entry));
    if (order == 0) {
      node.Edit().entry = std::move(entry);
      return;
    }
    Node& own = node.Edit();
    Put(order < 0 ? own.left : own.right, std::move(entry));
    Balance(node);
  }

  /// Balancing moves what refers to nodes; an entry stays in its place.
  template <typename SomeKey, typename Make>
  Entry& Edit(Ref& node, const SomeKey& key, const Make& make) {
    if (!node) {
      ++size_;
      node = Ref::Make(std::in_place, make);
      return node.Edit().entry;
    }
    const int order = Order(key, KeyOf()(node->entry));
    Node& own = node.Edit();
    if (order == 0) return own.entry;
    Entry& entry = Edit(order < 0 ? own.left : own.right, key, make);
    Balance(node);
    return entry;
  }

  /// There is one of this key.
  template <typename SomeKey>
  static void Remove(Ref& node, const SomeKey& key) {
    const int order = Order(key, KeyOf()(node->entry));
    if (order != 0) {
      Node& own = node.Edit();
      Remove(order < 0 ? own.left : own.right, key);
    } else if (!node->left || !node->right) {
      node = Ref(node->left ? node->left : node->right);
      return;
    } else {
      Node& own = node.Edit();
      own.entry = TakeFirst(own.right);
    }
    Balance(node);
  }

  /// The first entry of a tree that is not empty, which has it no more.
  static Entry TakeFirst(Ref& node) {
    if (node->left) {
      Entry first = TakeFirst(node.Edit().left);
      Balance(node);
      return first;
    }
    Entry first = node->entry;
    node = Ref(node->right);
    return first;
  }

  Ref root_;
  std::size_t size_ = 0;
};

struct KeyOfPair {
  template <typename Key, typename Value>
  const Key& operator()(const std::pair<Key, Value>& entry) const {
    return entry.first;
  }
};

/// As std::map is read and changed, where one is handed out as a view.
template <typename Key, typename Value, typename Less = std::less<>>
class PersistentMap
    : public PersistentTree<std::pair<Key, Value>, KeyOfPair, Less> {
 public:
  using key_type = Key;
  using mapped_type = Value;

  PersistentMap() = default;
  /// Of several with one key the first counts.
  PersistentMap(std::initializer_list<std::pair<Key, Value>> entries) {
    for (const auto& [key, value] : entries) emplace(key, value);
  }

  /// False: there was an entry, which stays.
  template <typename SomeValue = Value>
  bool emplace(Key key, SomeValue&& value) {
    return !this->contains(key) &&
           insert_or_assign(std::move(key), std::forward<SomeValue>(value));
  }
  /// False: there was an entry, which is replaced.
  template <typename SomeValue = Value>
  bool insert_or_assign(Key key, SomeValue&& value) {
    return this->Put({std::move(key), Value(std::forward<SomeValue>(value))});
  }
  /// The value of `key`, to be changed before the map is; a new one, of the key
  /// that `make_key` gives, where there was none. Nothing is copied unless
  /// other maps have it, too.
  template <typename SomeKey, typename MakeKey>
  Value& Edit(const SomeKey& key, const MakeKey& make_key) {
    const auto make = [&] {
      return std::pair<Key, Value>(std::piecewise_construct,
                                   std::forward_as_tuple(make_key()),
                                   std::tuple<>());
    };
    return PersistentTree<std::pair<Key, Value>, KeyOfPair, Less>::Edit(key,
                                                                        make)
        .second;
  }
  /// How many there were.
  template <typename SomeKey = Key>
  std::size_t erase(const SomeKey& key) {
    return this->Remove(key);
  }
  /// There is one.
  template <typename SomeKey = Key>
  const Value& at(const SomeKey& key) const {
    const std::pair<Key, Value>* entry = this->Look(key);
    assert(entry != nullptr);
    return entry->second;
  }
  /// Null when there is none.
  template <typename SomeKey = Key>
  const Value* Find(const SomeKey& key) const {
    const std::pair<Key, Value>* entry = this->Look(key);
    return entry != nullptr ? &entry->second : nullptr;
  }
};

/// The same of std::set.
template <typename Key, typename Less = std::less<>>
class PersistentSet : public PersistentTree<Key, std::identity, Less> {
 public:
  using key_type = Key;

  PersistentSet() = default;
  PersistentSet(std::initializer_list<Key> keys) {
    for (const Key& key : keys) insert(key);
  }

  /// False: it was there, and is replaced.
  bool insert(Key key) { return this->Put(std::move(key)); }
  template <typename SomeKey = Key>
  std::size_t erase(const SomeKey& key) {
    return this->Remove(key);
  }
};

}  // namespace devmgr
