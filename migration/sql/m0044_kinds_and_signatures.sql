-- m0043 passed over signed invoices that were reported. A report alone does not prove a signature, a submission does.
UPDATE invoices SET signed = TRUE WHERE NOT signed AND status = 'reported' AND EXISTS (
    SELECT 1 FROM pipeline_runs WHERE pipeline_runs.taxpayer_id = invoices.taxpayer_id
        AND pipeline_runs.irn_key = invoices.irn_key AND pipeline_runs.operation = 'submit'
        AND pipeline_runs.state = 'succeeded');
