//! Reduces all column claims, and a table's claim, to one point.
use ark_ff::{AdditiveGroup, Field};

use crate::channel::Channel;
use crate::error::Result;
use crate::expr::{Expr, Var};
use crate::group::Fr;
use crate::index_link::IndexLinkClaim;
use crate::mle::{eq_table, evaluate_list};
use crate::prover::Weighting;
use crate::session::{ColumnId, Functional, Pinned, Session, TableClaim};
use crate::sumcheck::products;

/// The point of the opening, the factor of each column, and the commitment to the value.
pub struct Opened<'a> {
    pub point: Vec<Fr>,
    pub factors: Vec<Fr>,
    /// The table's functional and its factor.
    pub table: Option<(TableClaim<'a>, Fr)>,
    pub single: Var,
    /// The columns with rows of another length; `single` and `factors` exclude these columns.
    pub pinned: Option<OpenedApart>,
    /// The hidden values of the separately opened columns at the point; `single` and `factors` exclude these columns.
    pub apart: Vec<Var>,
}

/// The columns that are opened by an argument of their own, in rows of 2^row_variables: the factor of each column, and the
/// commitment to the value.
pub struct OpenedApart {
    pub row_variables: usize,
    pub factors: Vec<Fr>,
    pub single: Var,
}

/// One opening: a combination of columns' rows, at a point.
pub struct ToOpen<'o, 'a> {
    pub point: &'o [Fr],
    /// The base-2 logarithm of the rows' length.
    pub row_variables: usize,
    /// One factor for each column.
    pub factors: &'o [Fr],
    /// The commitment to the combined rows of the columns that have no commitments of their own.
    pub linked: Option<&'o IndexLinkClaim>,
    /// A table's functional and its factor.
    pub table: Option<&'o (TableClaim<'a>, Fr)>,
    /// The commitment to the value.
    pub single: Var,
}

/// The weights of all entries up to the last of these.
fn table_of(entries: &[(usize, Fr)]) -> Vec<Fr> {
    let end = entries.iter().map(|(x, _)| x + 1).max();
    let mut table = vec![Fr::ZERO; end.unwrap_or_default()];
    entries.iter().for_each(|(x, weight)| table[*x] += weight);
    table
}

impl<'a, C: Channel> Session<'a, C> {
    /// Groups the columns by functional, and reduces the groups by one sumcheck of weight times combination. The columns in
    /// `apart` are opened separately.
    pub fn reduce_columns(&mut self, apart: &[ColumnId]) -> Result<Option<Opened<'a>>> {
        let claims = std::mem::take(&mut self.claims);
        let table = self.table.take();
        if claims.is_empty() && table.is_none() {
            return Ok(None);
        }
        let gamma = self.challenge("column claims");
        let mut groups: Vec<(Functional, Vec<(ColumnId, Fr)>)> = Vec::new();
        let (mut claim, mut power) = (Expr::zero(), Fr::ONE);
        for part in &claims {
            claim.add_scaled(&part.value, power);
            let weighed = part.columns.iter().map(|(id, f)| (*id, *f * power));
            match groups.iter_mut().find(|(f, _)| *f == part.functional) {
                Some((_, columns)) => columns.extend(weighed),
                None => groups.push((part.functional.clone(), weighed.collect())),
            }
            power *= gamma;
        }
        // The table's functional is the last one.
        let mut sums: Vec<&[(ColumnId, Fr)]> = groups.iter().map(|(_, c)| &c[..]).collect();
        let of_table = table.as_ref().map(|part| [(part.column, power)]);
        if let (Some(part), Some(column)) = (&table, &of_table) {
            claim.add_scaled(&part.value, power);
            sums.push(column);
        }
        let variables = sums
            .iter()
            .flat_map(|columns| columns.iter())
            .map(|(id, _)| self.columns[id.0].variables)
            .chain(table.iter().map(|t| t.table.layout.variables))
            .fold(self.row_variables, usize::max);
        let tables = self.known().map(|known| {
            let weights = groups.iter().map(|(functional, _)| match functional {
                Functional::Weight(weight) => Weighting::Weight(weight),
                Functional::Entries(entries) => Weighting::Table(table_of(entries)),
            });
            let functional = table
                .iter()
                .map(|part| part.functional.clone().unwrap_or_default());
            let weights = weights.chain(functional.map(Weighting::Table));
            weights
                .zip(sums.iter().map(|columns| known.entries(columns)))
                .collect()
        });
        let reduced = products(self, "column claims", variables, claim, tables)?;
        let finals = reduced.finals;
        let vars = self.send("columns at the point", sums.len(), finals.as_deref())?;
        let mut rest = reduced.claim;
        for ((functional, _), var) in groups.iter().zip(&vars) {
            rest.add_term(*var, -functional.evaluate(&reduced.point));
        }
        // The extension of the table's functional is public; the opening proves it.
        let extended = match &table {
            Some(part) => {
                let eq = || eq_table(&reduced.point);
                let dot = |f: &Vec<Fr>| f.iter().zip(eq()).map(|(f, e)| *f * e).sum();
                Some(self.response("table", part.functional.as_ref().map(dot))?)
            }
            None => None,
        };
        if let (Some(y), Some(var)) = (extended, vars.last()) {
            rest.add_term(*var, -y);
        }
        self.constrain("column claims", rest);

        let delta = self.challenge("column groups");
        let (mut value, mut power) = (Expr::zero(), Fr::ONE);
        let mut factors = vec![Fr::ZERO; self.columns.len()];
        for (columns, var) in sums.iter().zip(&vars) {
            value.add_term(*var, power);
            for (id, factor) in *columns {
                factors[id.0] += *factor * power;
            }
            power *= delta;
        }
        value.constant += extended.unwrap_or_default() * power;
        let at_point = self.known().map(|known| {
            let one = |id: &ColumnId| known.at(&[(*id, Fr::ONE)], &reduced.point);
            apart.iter().map(one).collect::<Vec<Fr>>()
        });
        let of_apart = self.send("columns apart", apart.len(), at_point.as_deref())?;
        for (id, var) in apart.iter().zip(&of_apart) {
            value.add_term(*var, -std::mem::take(&mut factors[id.0]));
        }
        let pinned = match self.pinned.take() {
            Some(pinned) => Some(self.open_apart(pinned, &mut factors, &reduced.point)?),
            None => None,
        };
        if let Some(pinned) = &pinned {
            value.add_term(pinned.single, -Fr::ONE);
        }
        let opened = self.known().map(|known| known.value(&value));
        let single = self.send_single("opened value", opened)?;
        self.constrain("opened value", value - single.into());
        Ok(Some(Opened {
            point: reduced.point,
            factors,
            table: table.map(|part| (part, power)),
            single,
            pinned,
            apart: of_apart,
        }))
    }

    /// Takes the factors of pinned columns, and sends the value of these columns at the point.
    fn open_apart(
        &mut self,
        pinned: Pinned,
        factors: &mut [Fr],
        point: &[Fr],
    ) -> Result<OpenedApart> {
        let mut apart = vec![Fr::ZERO; factors.len()];
        for id in &pinned.columns {
            apart[id.0] = std::mem::take(&mut factors[id.0]);
        }
        let value = self.known().map(|known| {
            let ids = pinned.columns.iter();
            let columns: Vec<(ColumnId, Fr)> = ids.map(|id| (*id, apart[id.0])).collect();
            evaluate_list(&known.entries(&columns), point)
        });
        Ok(OpenedApart {
            row_variables: pinned.row_variables,
            factors: apart,
            single: self.send_single("pinned value", value)?,
        })
    }
}
