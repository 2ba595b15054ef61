//! Distributes integer amounts over a graph: nodes pass them on in given proportions until they reach final targets.
//! Rounding does not change the sum of the amounts.

use std::collections::HashMap;

use crate::error::{check_lengths, AlgorithmError};

/// The proportions in which each node divides the amounts it receives among its targets.
///
/// Rows `first[i]..first[i + 1]` belong to node `i`. The node divides what it receives among the `target`s of its rows,
/// in proportion to their `weight`s. A `target` of 0 or more is a node with a number below `i`; a negative `target`
/// stands for the final target `-1 - target`. A node without positive weights keeps the amounts that it receives.
#[derive(Debug, Clone, Copy)]
pub struct Shares<'a> {
    first: &'a [i64],
    target: &'a [i64],
    weight: &'a [i64],
}

/// The result of [`Shares::pass_on`]: where the amounts ended up, and how much each node received from other nodes.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Arrived {
    /// The label that each amount had in the call of [`Shares::pass_on`].
    pub label: Vec<i64>,
    /// The node or final target at which each amount ended up. A negative number `t` stands for the final target
    /// `-1 - t`. Any other number is that of a node, which kept the amount because the node has no
    /// positive weights.
    pub target: Vec<i64>,
    /// Each amount.
    pub amount: Vec<i64>,
    /// The amount that each node received from other nodes.
    pub received: Vec<i64>,
}

impl<'a> Shares<'a> {
    /// Check columns that describe a graph with `first.len() - 1` nodes.
    ///
    /// # Errors
    ///
    /// `target` and `weight` differ in length, `first` does not ascend from 0 or has a value above this length, or a
    /// node passes amounts on to itself or to a later node.
    pub fn new(first: &'a [i64], target: &'a [i64], weight: &'a [i64]) -> Result<Self, AlgorithmError> {
        check_lengths([target.len(), weight.len()])?;
        let mut begin = 0;
        for (node, bounds) in first.windows(2).enumerate() {
            let rows = usize::try_from(bounds[0]).ok().zip(usize::try_from(bounds[1]).ok());
            let (from, to) = rows.ok_or(AlgorithmError::Row(bounds[0]))?;
            if from != begin || to < from || to > target.len() {
                return Err(AlgorithmError::Row(bounds[1]));
            }
            begin = to;
            if target[from..to].iter().any(|&towards| towards >= node as i64) {
                return Err(AlgorithmError::GraphCycle);
            }
        }
        Ok(Self { first, target, weight })
    }

    /// Distribute amounts, from the last node to the first. Each row `i` stands for an `amount[i]` that starts at
    /// `node[i]`; amounts with different values of `label` are distributed separately.
    ///
    /// # Errors
    ///
    /// The columns differ in length, or refer to a node that does not exist.
    pub fn pass_on(&self, node: &[i64], label: &[i64], amount: &[i64]) -> Result<Arrived, AlgorithmError> {
        check_lengths([node.len(), label.len(), amount.len()])?;
        let count = self.first.len().saturating_sub(1);
        let mut waiting: Vec<Vec<(i64, i64)>> = vec![Vec::new(); count];
        for ((&at, &name), &value) in node.iter().zip(label).zip(amount) {
            let row = usize::try_from(at).map_err(|_| AlgorithmError::Row(at))?;
            waiting.get_mut(row).ok_or(AlgorithmError::Row(at))?.push((name, value));
        }
        let mut arrived: HashMap<(i64, i64), i64> = HashMap::new();
        let mut received = vec![0_i64; count];
        for at in (0..count).rev() {
            let amounts = merged(std::mem::take(&mut waiting[at]));
            let rows = self.first[at] as usize..self.first[at + 1] as usize;
            let total: i128 = rows.clone().map(|row| i128::from(self.weight[row].max(0))).sum();
            for (name, value) in amounts {
                if total == 0 {
                    *arrived.entry((name, at as i64)).or_default() += value;
                    continue;
                }
                let (mut so_far, mut given) = (0_i128, 0_i64);
                for row in rows.clone() {
                    so_far += i128::from(self.weight[row].max(0));
                    // Because the running sum is rounded instead of each part, the parts add up to the whole amount.
                    let reached = ((i128::from(value) * so_far * 2 + total) / (2 * total)) as i64;
                    let part = reached - given;
                    given = reached;
                    if part == 0 {
                        continue;
                    }
                    let towards = self.target[row];
                    match usize::try_from(towards) {
                        Ok(next) => {
                            waiting[next].push((name, part));
                            received[next] += part;
                        }
                        Err(_) => *arrived.entry((name, towards)).or_default() += part,
                    }
                }
            }
        }
        let mut rows: Vec<((i64, i64), i64)> = arrived.into_iter().collect();
        rows.sort_unstable();
        Ok(Arrived {
            label: rows.iter().map(|row| row.0 .0).collect(),
            target: rows.iter().map(|row| row.0 .1).collect(),
            amount: rows.iter().map(|row| row.1).collect(),
            received,
        })
    }
}

/// Add up the amounts of each label.
fn merged(mut amounts: Vec<(i64, i64)>) -> Vec<(i64, i64)> {
    amounts.sort_unstable();
    let mut sums: Vec<(i64, i64)> = Vec::with_capacity(amounts.len());
    for (name, value) in amounts {
        match sums.last_mut() {
            Some(last) if last.0 == name => last.1 += value,
            _ => sums.push((name, value)),
        }
    }
    sums
}
