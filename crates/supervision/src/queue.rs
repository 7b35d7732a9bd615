//! The actor's own first-in, first-out queue of commands, which survives a restart.
//!
//! The worker only borrows the commands of a batch, so a panic of the worker cannot lose them. After a panic, each
//! command of the batch is a suspect and runs again in a batch of its own. A suspect that panics again is quarantined.
//! If the worker panicked during the commit, the outcome is unknown, so all commands of the batch are *interrupted*.

use std::collections::{HashMap, VecDeque};
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use timing::CommandId;

use super::mailbox::Envelope;

/// One command of a batch. Dereferences to the command.
#[derive(Debug)]
pub struct Task<C> {
    pub id: CommandId,
    pub command: Arc<C>,
    /// The time that the command waited for its batch.
    pub waited: Duration,
}

impl<C> Deref for Task<C> {
    type Target = C;

    fn deref(&self) -> &C {
        &self.command
    }
}

/// The limits of one batch.
#[derive(Debug)]
pub struct BatchLimits<C> {
    pub commands_max: usize,
    /// The weight at which a batch takes no further commands.
    pub weight_max: usize,
    pub weight: fn(&C) -> usize,
    /// Returns true if the command must be processed in a batch of its own.
    pub is_large: fn(&C) -> bool,
}

/// The commands that are processed together, the oldest first.
#[derive(Debug)]
pub struct CommandBatch<C> {
    tasks: Arc<[Task<C>]>,
    committing: Arc<AtomicBool>,
}

/// A clone refers to the same batch, so that another thread can work on it.
impl<C> Clone for CommandBatch<C> {
    fn clone(&self) -> Self {
        Self {
            tasks: Arc::clone(&self.tasks),
            committing: Arc::clone(&self.committing),
        }
    }
}

impl<C> CommandBatch<C> {
    pub fn tasks(&self) -> &[Task<C>] {
        &self.tasks
    }

    /// Marks the start of the commit. If the worker panics after this call, the outcome of the batch is unknown.
    pub fn start_commit(&self) {
        self.committing.store(true, Ordering::SeqCst);
    }
}

#[derive(Debug)]
struct QueuedCommand<C, R> {
    envelope: Envelope<C, R>,
    panics: u8,
}

#[derive(Debug)]
struct InFlightBatch<C, R> {
    entries: Vec<QueuedCommand<C, R>>,
    committing: Arc<AtomicBool>,
}

/// The numbers of commands in flight that a panic made suspects, interrupted or quarantined.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RecoveryCounts {
    pub suspects: usize,
    pub interrupted: usize,
    pub quarantined: usize,
}

#[derive(Debug)]
pub struct WorkQueue<C, R> {
    waiting: VecDeque<QueuedCommand<C, R>>,
    in_flight: Option<InFlightBatch<C, R>>,
}

impl<C, R> Default for WorkQueue<C, R> {
    fn default() -> Self {
        Self {
            waiting: VecDeque::new(),
            in_flight: None,
        }
    }
}

impl<C, R> WorkQueue<C, R> {
    pub fn push(&mut self, envelope: Envelope<C, R>) {
        self.waiting.push_back(QueuedCommand {
            envelope,
            panics: 0,
        });
    }

    /// Returns the number of commands that wait or are in flight.
    pub fn depth(&self) -> usize {
        self.waiting.len()
            + self
                .in_flight
                .as_ref()
                .map_or(0, |batch| batch.entries.len())
    }

    /// Returns the time at which the oldest command was sent that no batch has taken yet; `None` if none waits.
    pub fn waiting_since(&self) -> Option<Instant> {
        let oldest = self.waiting.front()?;
        Some(oldest.envelope.sent_at())
    }

    pub fn is_empty(&self) -> bool {
        self.depth() == 0
    }

    /// Returns true if a batch can be taken: commands wait and no batch is in flight.
    pub fn is_due(&self) -> bool {
        self.in_flight.is_none() && !self.waiting.is_empty()
    }

    /// Takes as many commands as the limits allow; a suspect or a large command is taken alone. Returns `None` if no
    /// batch can be taken now.
    pub fn take_batch(&mut self, limits: &BatchLimits<C>) -> Option<CommandBatch<C>> {
        if !self.is_due() {
            return None;
        }
        let mut weight = 0;
        let first_commands = self
            .waiting
            .iter()
            .take(limits.commands_max)
            .take_while(|entry| {
                let Some(command) = entry.envelope.command() else {
                    return true;
                };
                if entry.panics > 0 || (limits.is_large)(&command) || weight >= limits.weight_max {
                    return false;
                }
                weight += (limits.weight)(&command);
                true
            });
        let batch_size = first_commands.count();
        let mut entries: Vec<_> = self.waiting.drain(..batch_size.max(1)).collect();
        let tasks = entries
            .iter_mut()
            .filter_map(|entry| start_task(&mut entry.envelope))
            .collect();
        let committing = Arc::new(AtomicBool::new(false));
        self.in_flight = Some(InFlightBatch {
            entries,
            committing: Arc::clone(&committing),
        });
        Some(CommandBatch { tasks, committing })
    }

    /// Sends the replies of the batch in flight. Commands without a reply are *interrupted*. Returns the number of such
    /// commands.
    pub fn answer(&mut self, replies: impl IntoIterator<Item = (CommandId, R)>) -> usize {
        let mut replies: HashMap<_, _> = replies.into_iter().collect();
        let mut unanswered = 0;
        for entry in self
            .in_flight
            .take()
            .into_iter()
            .flat_map(|batch| batch.entries)
        {
            if let Some(reply) = replies.remove(&entry.envelope.id()) {
                entry.envelope.answer(reply);
            } else {
                unanswered += 1;
                entry.envelope.interrupt();
            }
        }
        unanswered
    }

    /// Handles a panic: each command in flight becomes a suspect, is quarantined, or is answered as interrupted.
    pub fn recover(&mut self, mut quarantined: impl FnMut(CommandId, &C)) -> RecoveryCounts {
        let mut recovery = RecoveryCounts::default();
        let Some(batch) = self.in_flight.take() else {
            return recovery;
        };
        let committing = batch.committing.load(Ordering::SeqCst);
        for mut entry in batch.entries.into_iter().rev() {
            entry.panics += 1;
            if committing {
                recovery.interrupted += 1;
                entry.envelope.interrupt();
            } else if entry.panics > 1 {
                recovery.quarantined += 1;
                if let Some(command) = entry.envelope.command() {
                    quarantined(entry.envelope.id(), &command);
                }
                entry.envelope.quarantine();
            } else {
                recovery.suspects += 1;
                entry.envelope.mark_unstarted();
                self.waiting.push_front(entry);
            }
        }
        recovery
    }
}

fn start_task<C, R>(envelope: &mut Envelope<C, R>) -> Option<Task<C>> {
    let command = envelope.command()?;
    envelope.mark_started();
    Some(Task {
        id: envelope.id(),
        command,
        waited: envelope.sent_at().elapsed(),
    })
}

#[cfg(test)]
mod tests {
    use timing::clock;

    use super::super::admission::{Admission, AdmissionLimits};
    use super::super::mailbox::{CommandOutcome, OutcomeReceiver};
    use super::*;

    type Sent = OutcomeReceiver<u32, u32>;

    fn filled_queue(commands: impl IntoIterator<Item = u32>) -> (WorkQueue<u32, u32>, Vec<Sent>) {
        let admission = Admission::new(AdmissionLimits::default(), Arc::default());
        let mut queue = WorkQueue::default();
        let send = |command| {
            let (envelope, answer) =
                Envelope::new(clock::new_id(), command, admission.admit(1).unwrap());
            queue.push(envelope);
            answer
        };
        let answers = commands.into_iter().map(send).collect();
        (queue, answers)
    }

    const LIMITS: BatchLimits<u32> = limits(64);

    /// The weight of a command is its number. A command of at least 1,000 is large.
    const fn limits(commands_max: usize) -> BatchLimits<u32> {
        BatchLimits {
            commands_max,
            weight_max: 100,
            weight: |command| usize::try_from(*command).unwrap(),
            is_large: |command| *command >= 1_000,
        }
    }

    fn commands(batch: &CommandBatch<u32>) -> Vec<u32> {
        batch.tasks().iter().map(|task| **task).collect()
    }

    fn process_batch(queue: &mut WorkQueue<u32, u32>) -> Vec<u32> {
        let batch = queue.take_batch(&LIMITS).unwrap();
        assert_eq!(
            queue.answer(
                batch
                    .tasks()
                    .iter()
                    .map(|task| (task.id, **task))
                    .collect::<Vec<_>>()
            ),
            0
        );
        commands(&batch)
    }

    #[test]
    fn a_large_command_is_its_own_batch() {
        let (mut queue, _answers) = filled_queue([1, 2, 1_000, 2_000, 3]);
        let mut taken = Vec::new();
        while queue.is_due() {
            taken.push(process_batch(&mut queue));
        }
        assert_eq!(taken, [vec![1, 2], vec![1_000], vec![2_000], vec![3]]);
    }

    #[test]
    fn a_batch_ends_at_its_weight() {
        let (mut queue, _answers) = filled_queue([40, 40, 40, 40, 900, 1]);
        let batches: Vec<_> = (0..3).map(|_| process_batch(&mut queue)).collect();
        assert_eq!(batches, [vec![40, 40, 40], vec![40, 900], vec![1]]);
    }

    #[test]
    fn a_batch_is_taken_in_order_and_only_one_at_a_time() {
        let (mut queue, _answers) = filled_queue(1..=5);
        let batch = queue.take_batch(&limits(3)).unwrap();
        assert_eq!(commands(&batch), [1, 2, 3]);
        assert!(queue.take_batch(&limits(3)).is_none());
        assert_eq!(queue.depth(), 5);
        queue.answer([]);
        assert_eq!(commands(&queue.take_batch(&limits(3)).unwrap()), [4, 5]);
    }

    #[test]
    fn after_a_panic_each_suspect_runs_alone_before_the_rest_in_order() {
        let (mut queue, _answers) = filled_queue(1..=5);
        drop(queue.take_batch(&limits(3)));
        let recovery = queue.recover(|_, _| panic!("nothing to quarantine"));
        assert_eq!(
            recovery,
            RecoveryCounts {
                suspects: 3,
                ..RecoveryCounts::default()
            }
        );
        let batches: Vec<_> = (0..4).map(|_| process_batch(&mut queue)).collect();
        assert_eq!(batches, [vec![1], vec![2], vec![3], vec![4, 5]]);
        assert!(queue.is_empty());
    }

    #[test]
    fn a_suspect_that_panics_again_is_quarantined_and_the_others_continue() {
        let (mut queue, mut answers) = filled_queue(1..=3);
        drop(queue.take_batch(&LIMITS));
        queue.recover(|_, _| panic!("nothing to quarantine"));
        assert_eq!(process_batch(&mut queue), [1]);
        let suspect = queue.take_batch(&LIMITS).unwrap().tasks()[0].id;
        let mut quarantined = Vec::new();
        let recovery = queue.recover(|id, command| quarantined.push((id, *command)));
        assert_eq!(
            recovery,
            RecoveryCounts {
                quarantined: 1,
                ..RecoveryCounts::default()
            }
        );
        assert_eq!(quarantined, [(suspect, 2)]);
        assert_eq!(process_batch(&mut queue), [3]);
        let outcome = answers[1].try_recv();
        assert!(
            matches!(outcome, Ok(CommandOutcome::Quarantined { reference }) if reference == suspect)
        );
    }

    #[test]
    fn a_batch_that_panics_while_committing_is_interrupted_and_not_tried_again() {
        let (mut queue, mut answers) = filled_queue(1..=3);
        queue.take_batch(&limits(2)).unwrap().start_commit();
        let recovery = queue.recover(|_, _| panic!("nothing to quarantine"));
        assert_eq!(
            recovery,
            RecoveryCounts {
                interrupted: 2,
                ..RecoveryCounts::default()
            }
        );
        assert!(matches!(
            answers[0].try_recv(),
            Ok(CommandOutcome::Interrupted)
        ));
        assert!(matches!(
            answers[1].try_recv(),
            Ok(CommandOutcome::Interrupted)
        ));
        assert_eq!(process_batch(&mut queue), [3]);
    }

    #[test]
    fn a_command_without_a_reply_is_interrupted() {
        let (mut queue, mut answers) = filled_queue(1..=2);
        let batch = queue.take_batch(&limits(2)).unwrap();
        assert_eq!(queue.answer([(batch.tasks()[1].id, 7)]), 1);
        assert!(matches!(
            answers[0].try_recv(),
            Ok(CommandOutcome::Interrupted)
        ));
        assert!(matches!(answers[1].try_recv(), Ok(CommandOutcome::Done(7))));
    }

    #[test]
    fn a_dropped_queue_returns_waiting_commands_and_interrupts_those_in_flight() {
        let (mut queue, mut answers) = filled_queue(1..=2);
        drop(queue.take_batch(&limits(1)));
        drop(queue);
        assert!(matches!(
            answers[0].try_recv(),
            Ok(CommandOutcome::Interrupted)
        ));
        assert!(matches!(
            answers[1].try_recv(),
            Ok(CommandOutcome::NotStarted { command: 2, .. })
        ));
    }

    #[test]
    fn a_suspect_in_a_dropped_queue_is_returned() {
        let (mut queue, mut answers) = filled_queue([1]);
        drop(queue.take_batch(&limits(1)));
        queue.recover(|_, _| panic!("nothing to quarantine"));
        drop(queue);
        assert!(matches!(
            answers[0].try_recv(),
            Ok(CommandOutcome::NotStarted { command: 1, .. })
        ));
    }
}
