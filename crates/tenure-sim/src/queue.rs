//! What happens when: events by true time, and in the order they were put in where the time is the same.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::clock::Nanos;

/// A queue of events by time. Events lie still in a slab; only small keys move in the heap.
#[derive(Debug)]
pub struct Queue<T> {
    heap: BinaryHeap<Reverse<(Nanos, u32, u32)>>,
    slab: Vec<Option<T>>,
    free: Vec<u32>,
    next: u32,
}

impl<T> Queue<T> {
    /// Plans `event` for `at`.
    pub fn push(&mut self, at: Nanos, event: T) {
        let slot = match self.free.pop() {
            Some(slot) => {
                self.slab[slot as usize] = Some(event);
                slot
            }
            None => {
                self.slab.push(Some(event));
                self.slab.len() as u32 - 1
            }
        };
        self.heap.push(Reverse((at, self.next, slot)));
        self.next += 1;
    }

    /// When the next event happens.
    pub fn next_at(&self) -> Option<Nanos> {
        self.heap.peek().map(|Reverse((at, ..))| *at)
    }

    /// Takes the next event.
    pub fn pop(&mut self) -> Option<(Nanos, T)> {
        let Reverse((at, _, slot)) = self.heap.pop()?;
        self.free.push(slot);
        self.slab[slot as usize].take().map(|event| (at, event))
    }

    /// Forgets every event for which `keep` is false.
    pub fn retain(&mut self, mut keep: impl FnMut(Nanos, &T) -> bool) {
        let Self { heap, slab, free, .. } = self;
        heap.retain(|Reverse((at, _, slot))| {
            let keeps = slab[*slot as usize].as_ref().is_some_and(|event| keep(*at, event));
            if !keeps {
                slab[*slot as usize] = None;
                free.push(*slot);
            }
            keeps
        });
    }
}

impl<T> Default for Queue<T> {
    fn default() -> Self {
        Self { heap: BinaryHeap::new(), slab: Vec::new(), free: Vec::new(), next: 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_come_by_time_and_then_in_the_order_they_were_put_in() {
        let mut queue = Queue::default();
        for (at, event) in [(5, 'c'), (1, 'a'), (5, 'd'), (3, 'b'), (5, 'x')] {
            queue.push(at, event);
        }
        queue.retain(|_, event| *event != 'x');
        let mut seen = String::new();
        while let Some((_, event)) = queue.pop() {
            seen.push(event);
            if event == 'b' {
                queue.push(5, 'e');
            }
        }
        assert_eq!(seen, "abcde");
    }
}
